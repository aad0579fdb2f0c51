"""Files that cannot be read, and lines of those that can."""

import os
from pathlib import Path

import pytest

from dsp.config import ConfigFaults, examine, load_config


def only_fault(path: Path, **env: str) -> str:
    with pytest.raises(ConfigFaults) as caught:
        load_config(path, env=env)
    (fault,) = caught.value.faults
    assert fault.source.kind == "file"
    assert fault.source.name == str(path)
    assert fault.hint
    return str(fault).replace(f"{path.parent}/", "")


def test_missing_file(tmp_path: Path) -> None:
    line = only_fault(tmp_path / "dsp.toml")
    assert line == "dsp.toml: no such file (check the name and the working directory)"


def test_directory(tmp_path: Path) -> None:
    (tmp_path / "conf").mkdir()
    assert only_fault(tmp_path / "conf") == "conf: is a directory (name a TOML file in it)"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_forbidden_file(tmp_path: Path) -> None:
    path = tmp_path / "dsp.toml"
    path.write_text("")
    path.chmod(0)
    assert only_fault(path).startswith("dsp.toml: may not be read")


def test_file_below_a_file(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("")
    assert "cannot be read: Not a directory" in only_fault(tmp_path / "a" / "dsp.toml")


def test_name_with_nul() -> None:
    (fault,) = examine("a\0b", env={}).faults
    assert str(fault).startswith(r"'a\x00b': cannot be read")


def test_endless_file() -> None:
    assert "is over 1048576 bytes" in only_fault(Path("/dev/zero"))


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("[transport]\nurl = zmq\n", "dsp.toml:2:7"),
        ("[transport]\nurl = 1\nurl = 2\n", "dsp.toml:3:8"),
        ("[transport", "dsp.toml:1"),
        ('[transport]\nurl = """\nabc', "dsp.toml:3"),
    ],
)
def test_syntax_error(tmp_path: Path, text: str, place: str) -> None:
    path = tmp_path / "dsp.toml"
    path.write_text(text)
    assert only_fault(path).startswith(f"{place}: is not valid TOML: ")


def test_number_too_long_for_python(tmp_path: Path) -> None:
    path = tmp_path / "dsp.toml"
    path.write_text(f"[node]\nid = {'9' * 5000}\n")
    assert "is not valid TOML" in only_fault(path)


def test_nested_too_deeply(tmp_path: Path) -> None:
    path = tmp_path / "dsp.toml"
    path.write_text("a = " + "[" * 100_000)
    assert "nested too deeply" in only_fault(path)


def test_not_utf8(tmp_path: Path) -> None:
    path = tmp_path / "dsp.toml"
    path.write_bytes(b'[node]\nid = "caf\xe9"\n')
    assert only_fault(path) == "dsp.toml:2:10: is not UTF-8: byte 0xe9 (save the file as UTF-8)"


def test_byte_order_mark_and_windows_lines(tmp_path: Path) -> None:
    path = tmp_path / "dsp.toml"
    path.write_bytes(b'\xef\xbb\xbf[node]\r\nid = "a"\r\n')
    examination = examine(path, env={})
    assert examination.config is not None
    assert examination.sources["node.id"].line == 2


def test_unreadable_file_hides_no_fault_elsewhere_and_makes_up_none(tmp_path: Path) -> None:
    path = tmp_path / "dsp.toml"
    env = {"DSP_TRANSPORT__SEND_QUEUE_BYTES": "2048", "DSP_TRANSPORT__SEND_QUEUE_FRAMES": "0"}
    examination = examine(path, env=env, overrides={"nod": {}})
    # The file might have set a max_frame_bytes that fits 2048, so that is not held against it.
    assert [fault.path for fault in examination.faults] == [
        "",
        "transport.send_queue_frames",
        "nod",
    ]
    assert examination.effective == {"transport.send_queue_bytes": 2048}
