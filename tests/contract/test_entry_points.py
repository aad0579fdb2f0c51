"""Transports of other packages are found through real entry points, and only one per scheme."""

from pathlib import Path

import pytest

from dsp.config import TransportConfig
from dsp.core.types import NodeId
from dsp.errors import ConfigError
from dsp.transport import registry
from dsp.transport.registry import create_transport, known_schemes, take_known, transport_class
from tests.contract.tcp_package import tcp_installed, write_distribution

GROUP = "dsp.transports"


def test_an_installed_transport_is_found(tmp_path: Path) -> None:
    """The declaration in the example's pyproject.toml is the one that is used."""
    with pytest.raises(ConfigError, match="unknown scheme 'tcp'"):
        transport_class("tcp://127.0.0.1:5555")
    with tcp_installed(tmp_path):
        assert known_schemes()["tcp"].target == "dsp_tcp:TcpTransport"
        cls = transport_class("tcp://127.0.0.1:5555")
        assert (cls.scheme, cls.__name__) == ("tcp", "TcpTransport")
        endpoint = create_transport(TransportConfig(url="tcp://127.0.0.1:0"), NodeId("a"))
        assert type(endpoint) is cls


def test_two_claims_on_one_scheme_are_refused(tmp_path: Path) -> None:
    write_distribution(tmp_path, "another-tcp", {GROUP: {"tcp": "another_tcp:Transport"}})
    with (
        tcp_installed(tmp_path),
        pytest.raises(ConfigError, match="'tcp' is claimed by") as refused,
    ):
        transport_class("tcp://127.0.0.1:5555")
    assert "dsp_tcp:TcpTransport" in str(refused.value)
    assert "another_tcp:Transport" in str(refused.value)


def test_a_scheme_of_dsp_cannot_be_taken(tmp_path: Path) -> None:
    write_distribution(tmp_path, "taker", {GROUP: {"sim": "dsp_tcp:TcpTransport"}})
    with tcp_installed(tmp_path), pytest.raises(ConfigError, match="'sim' is claimed by"):
        transport_class("sim://world/node")


def test_who_was_told_that_a_scheme_is_known_does_not_look_around(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "_taken", {})
    write_distribution(tmp_path, "taker", {GROUP: {"sim": "dsp_tcp:TcpTransport"}})
    with tcp_installed(tmp_path):
        take_known("sim://world/node")
        assert transport_class("sim://world/other").scheme == "sim"
        with pytest.raises(ConfigError, match="'sim' is claimed by"):
            take_known("tcp://127.0.0.1:0")
    (tmp_path / "alone").mkdir()
    with tcp_installed(tmp_path / "alone"):
        take_known("tcp://127.0.0.1:0")
        assert transport_class("tcp://127.0.0.1:1").scheme == "tcp"
    with pytest.raises(ConfigError, match="unknown scheme 'wrong'"):
        take_known("wrong://127.0.0.1:0")


def test_an_entry_point_to_something_else_is_refused(tmp_path: Path) -> None:
    write_distribution(tmp_path, "wrong", {GROUP: {"wrong": "dsp_tcp:logging"}})
    with tcp_installed(tmp_path), pytest.raises(ConfigError, match="not a dsp Transport class"):
        transport_class("wrong://127.0.0.1:5555")
