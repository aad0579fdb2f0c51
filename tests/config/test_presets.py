"""Presets are good configurations, and differ in the direction that their names say."""

from collections.abc import Callable

import pytest
from pydantic import ValidationError

from dsp.config import TransportConfig, load_config

PRESETS = [TransportConfig.lan, TransportConfig.wan, TransportConfig.edge]


@pytest.mark.parametrize("preset", PRESETS)
def test_a_preset_is_valid_and_takes_a_url(preset: Callable[..., TransportConfig]) -> None:
    assert preset().url == TransportConfig().url
    config = preset("zmq://0.0.0.0:1")
    assert config.url == "zmq://0.0.0.0:1"
    assert load_config(env={}, overrides={"transport": config}).transport == config


@pytest.mark.parametrize("preset", PRESETS)
def test_a_preset_checks_its_url(preset: Callable[..., TransportConfig]) -> None:
    with pytest.raises(ValidationError) as caught:
        preset("kafka://user:hunter2@host")
    assert "hunter2" not in str(caught.value)


def test_edge_is_smaller_than_everything() -> None:
    edge = TransportConfig.edge()
    for other in (TransportConfig(), TransportConfig.lan(), TransportConfig.wan()):
        assert edge.send_queue_bytes < other.send_queue_bytes
        assert edge.receive_queue_bytes < other.receive_queue_bytes
        assert edge.send_queue_frames < other.send_queue_frames
        assert edge.max_frame_bytes < other.max_frame_bytes


def test_far_is_more_patient_than_near() -> None:
    assert TransportConfig.wan().connect_timeout > TransportConfig.lan().connect_timeout
    assert TransportConfig.wan().drain_timeout > TransportConfig.lan().drain_timeout
