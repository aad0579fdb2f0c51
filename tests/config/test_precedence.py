"""Which source wins, and what each one may say."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from dsp.config import Config, TransportConfig, examine, load_config


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "dsp.toml"
    path.write_text('[transport]\nurl = "zmq://file:1"\nsend_queue_frames = 10\n')
    return path


def test_defaults_need_no_source() -> None:
    config = load_config(env={})
    assert config == Config()
    assert config.node.id is None
    assert config.transport.url == "sim://world/node"
    assert config.transport.send_queue_frames == 1024
    assert config.transport.send_queue_bytes == 16 * 1024 * 1024
    assert config.transport.receive_queue_frames == 1024
    assert config.transport.receive_queue_bytes == 16 * 1024 * 1024
    assert config.transport.max_frame_bytes == 4 * 1024 * 1024
    assert config.transport.drain_timeout == 5.0
    assert config.transport.connect_timeout == 5.0


def test_file_over_defaults(file: Path) -> None:
    config = load_config(file, env={})
    assert config.transport.url == "zmq://file:1"
    assert config.transport.receive_queue_frames == 1024


def test_environment_over_file_setting_by_setting(file: Path) -> None:
    config = load_config(file, env={"DSP_TRANSPORT__URL": "zmq://env:1"})
    assert config.transport.url == "zmq://env:1"
    assert config.transport.send_queue_frames == 10


def test_overrides_over_environment_and_file(file: Path) -> None:
    config = load_config(
        str(file),
        env={"DSP_TRANSPORT__URL": "zmq://env:1", "DSP_TRANSPORT__DRAIN_TIMEOUT": "1"},
        overrides={"transport": {"url": "zmq://override:1"}},
    )
    assert config.transport.url == "zmq://override:1"
    assert config.transport.drain_timeout == 1.0
    assert config.transport.send_queue_frames == 10


def test_a_preset_as_override_keeps_the_url_of_the_file(file: Path) -> None:
    config = load_config(file, env={}, overrides={"transport": TransportConfig.edge()})
    assert config.transport.url == "zmq://file:1"
    assert config.transport.send_queue_frames == TransportConfig.edge().send_queue_frames


def test_the_process_environment_is_read_only_without_env(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DSP_NODE__ID", "from-process")
    assert load_config().node.id == "from-process"
    assert load_config(env={}).node.id is None


def test_examine_tells_where_values_come_from(file: Path) -> None:
    examination = examine(
        file, env={"DSP_NODE__ID": "n"}, overrides={"transport": {"drain_timeout": 1}}
    )
    assert {path: str(source) for path, source in examination.sources.items()} == {
        "transport.url": f"{file}:2",
        "transport.send_queue_frames": f"{file}:3",
        "node.id": "environment DSP_NODE__ID",
        "transport.drain_timeout": "overrides",
    }
    assert examination.faults == ()
    assert examination.effective["transport.send_queue_frames"] == 10
    assert examination.effective["transport.connect_timeout"] == 5.0


def test_models_are_frozen() -> None:
    with pytest.raises(ValidationError):
        Config().transport.url = "zmq://other:1"


def test_an_overridden_value_is_not_checked(file: Path) -> None:
    # What does not count cannot hurt; a name that nobody knows can.
    file.write_text("[transport]\nsend_queue_frames = 0\n")
    config = load_config(file, env={"DSP_TRANSPORT__SEND_QUEUE_FRAMES": "7"})
    assert config.transport.send_queue_frames == 7
