"""Every kind of fault: its place, its words, and that none hides another."""

import pickle
from collections.abc import Mapping
from pathlib import Path

import pytest

from dsp.config import ConfigFaults, Fault, Source, examine, load_config
from dsp.errors import ConfigError, DspError


def faults(
    path: Path | None = None,
    env: Mapping[str, str] | None = None,
    overrides: Mapping[str, object] | None = None,
) -> list[str]:
    """Lines of the message, with the file's folder left out; checks that both forms agree."""
    with pytest.raises(ConfigFaults) as caught:
        load_config(path, env=env or {}, overrides=overrides)
    lines = str(caught.value).splitlines()
    assert lines == [str(fault) for fault in caught.value.faults]
    return [line.replace(f"{path.parent}/", "") if path else line for line in lines]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "dsp.toml"


def test_all_faults_of_all_sources_at_once(file: Path) -> None:
    file.write_text(
        "# a comment\n"
        "[transport]\n"
        'urll = "zmq://a:1"\n'
        "send_queue_frames = 0\n"
        "send_queue_bytes = 2048\n"
        "\n"
        "[transprot]\n"
    )
    found = faults(
        file,
        {"DSP_TRANSPORT__DRAIN_TIMEOUT": "soon", "DSP_TRANSPORT__URLS": "x"},
        {"node": {"id": "a b"}},
    )
    assert [line.partition(": ")[0] for line in found] == [
        "dsp.toml:3",
        "dsp.toml:4",
        "dsp.toml:5",
        "dsp.toml:7",
        "environment DSP_TRANSPORT__URLS",
        "environment DSP_TRANSPORT__DRAIN_TIMEOUT",
        "overrides",
    ]


def test_fault_is_machine_readable(file: Path) -> None:
    file.write_text("\n[transport]\nsend_queue_frames = 0\n")
    assert examine(file, env={}).faults == (
        Fault(
            source=Source("file", str(file), line=3),
            path="transport.send_queue_frames",
            problem="must be greater than or equal to 1, got 0",
            hint="allowed: an integer from 1 to 1048576",
        ),
    )


def test_error_is_a_config_error_and_can_be_pickled() -> None:
    with pytest.raises(ConfigError) as caught:
        load_config(env={}, overrides={"x": 1})
    error = caught.value
    assert isinstance(error, ConfigFaults)
    assert isinstance(error, DspError)
    assert isinstance(error, ValueError)
    copy = pickle.loads(pickle.dumps(error))
    assert copy.faults == error.faults
    assert str(copy) == str(error)


@pytest.mark.parametrize(
    ("overrides", "line"),
    [
        ({"transprot": {}}, "overrides: transprot: unknown key (did you mean transport?)"),
        (
            {"zzz": 1},
            "overrides: zzz: unknown key (allowed: node, transport, stream, scaling, balance)",
        ),
        ({"node": {"ID": "a"}}, "overrides: node.ID: unknown key (did you mean id?)"),
        ({"node": {7: "a"}}, "overrides: node.7: unknown key (allowed: id)"),
        (
            {"a\nb": 1},
            r"overrides: 'a\nb': unknown key (allowed: node, transport, stream, scaling, balance)",
        ),
        ({"node": None}, "overrides: node: must be a table, got None (its keys: id)"),
        ({"node": ["id"]}, "overrides: node: must be a table, got ['id'] (its keys: id)"),
        (
            {"transport": {"send_queue_frames": True}},
            "overrides: transport.send_queue_frames: must be a valid integer, got True "
            "(allowed: an integer from 1 to 1048576)",
        ),
        (
            {"transport": {"send_queue_frames": "12"}},
            "overrides: transport.send_queue_frames: must be a valid integer, got '12' "
            "(allowed: an integer from 1 to 1048576)",
        ),
        (
            {"transport": {"connect_timeout": 0}},
            "overrides: transport.connect_timeout: must be greater than or equal to 0.01, got 0 "
            "(allowed: a number from 0.01 to 3600.0)",
        ),
        (
            {"transport": {"drain_timeout": float("nan")}},
            "overrides: transport.drain_timeout: must be a finite number, got nan "
            "(allowed: a number from 0.0 to 3600.0)",
        ),
        (
            {"transport": {"url": 5}},
            "overrides: transport.url: must be a valid string, got 5 "
            "(allowed: text of at most 2048 characters)",
        ),
    ],
)
def test_words(overrides: Mapping[str, object], line: str) -> None:
    assert faults(overrides=overrides) == [line]


def test_overrides_must_be_a_table() -> None:
    found = examine(env={}, overrides=[1]).faults  # type: ignore[arg-type]
    assert [str(fault) for fault in found] == [
        "overrides: must be a table, got [1] (its keys: node, transport, stream, scaling, balance)"
    ]


@pytest.mark.parametrize("name", ["", "-a", "a b", "a/b", "a\n", "ä", "a" * 129])
def test_node_id_that_some_transport_could_not_carry(name: str) -> None:
    (line,) = faults(overrides={"node": {"id": name}})
    assert line.startswith("overrides: node.id: must ")


@pytest.mark.parametrize("name", ["a", "7", "gateway-7.site_1", "a" * 128])
def test_good_node_id(name: str) -> None:
    assert load_config(env={}, overrides={"node": {"id": name}}).node.id == name


def test_frame_that_fits_no_queue_is_reported_where_the_bound_was_set(file: Path) -> None:
    file.write_text("[transport]\nreceive_queue_bytes = 2048\n")
    (line,) = faults(file)
    assert line == (
        "dsp.toml:2: transport.max_frame_bytes: 4194304 is over receive_queue_bytes (2048): "
        "such a frame would never fit (lower max_frame_bytes or raise the queue's bound)"
    )


def test_frame_over_both_queues_is_one_fault_beside_others() -> None:
    found = faults(
        overrides={
            "transport": {
                "send_queue_frames": 0,
                "send_queue_bytes": 2048,
                "receive_queue_bytes": 4096,
                "max_frame_bytes": 8192,
            }
        }
    )
    assert len(found) == 2
    assert "8192 is over send_queue_bytes (2048) and receive_queue_bytes (4096)" in found[1]


def test_frame_may_be_as_large_as_the_queues() -> None:
    sizes = {"send_queue_bytes": 2048, "receive_queue_bytes": 2048, "max_frame_bytes": 2048}
    load_config(env={}, overrides={"transport": sizes})


def test_wrong_queue_bound_does_not_blame_the_frame() -> None:
    (line,) = faults(overrides={"transport": {"send_queue_bytes": 1}})
    assert "transport.send_queue_bytes" in line


def test_long_values_are_cut_and_stay_on_one_line() -> None:
    deep: list[object] = []
    deep.append(deep)
    for value in ("x\n" * 5000, [["y" * 5000]] * 50, 10**5000, deep, object()):
        (line,) = faults(overrides={"transport": {"drain_timeout": value}})
        assert len(line) < 600


def test_keys_may_be_anything() -> None:
    for key in (10**5000, b"x", None, (1, 2), "k" * 5000, "\ud800"):
        (line,) = faults(overrides={key: 1})  # type: ignore[dict-item]
        assert len(line) < 200
        assert line.encode()
