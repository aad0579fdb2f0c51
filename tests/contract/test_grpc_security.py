"""``grpcs://``: who gets in, who does not, and what people are told about it."""

import asyncio
from pathlib import Path
from typing import Any

import grpc
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization

from dsp.config import TransportConfig
from dsp.core.types import Lane, NodeId, Peer
from dsp.errors import ConfigError
from dsp.testing.contract.harness import check
from dsp.transport.base import Transport
from dsp.transport.grpc.credentials import read_credentials
from dsp.transport.grpc.endpoint import GrpcsTransport
from dsp.transport.registry import create_transport
from tests.contract.grpc_harness import Authority, certificate_of, common_authority
from tests.contract.test_grpc_details import GrpcDetails


def config(section: dict[str, Any], url: str = "grpcs://127.0.0.1:0") -> TransportConfig:
    return TransportConfig.model_validate({"url": url, "drain_timeout": 0.1, "grpc": section})


def make(node: str, section: dict[str, Any], url: str = "grpcs://127.0.0.1:0") -> Transport:
    return create_transport(config(section, url), NodeId(node))


class Careless(GrpcsTransport):
    """An endpoint that does not try its files: as if they had turned bad while it ran."""

    async def _load_credentials(self) -> grpc.ServerCredentials:
        loaded = read_credentials(self._files)
        self._channel_credentials = loaded.channel
        return loaded.server


def careless(node: str, section: dict[str, Any]) -> Transport:
    return Careless.from_config(config(section), NodeId(node))


def start(section: dict[str, Any], node: str = "a") -> None:
    async def opened() -> None:
        async with make(node, section):
            pass

    asyncio.run(opened())


# -- faults of our own, when we start ---------------------------------------------------------


def test_every_missing_setting_is_named() -> None:
    with pytest.raises(ConfigError) as fault:
        make("a", {"private_key_file": "key.pem"})
    assert "transport.grpc.certificate_file" in str(fault.value)
    assert "transport.grpc.ca_file" in str(fault.value)
    assert "private_key_file" not in str(fault.value)


@pytest.mark.parametrize("setting", ["certificate_file", "private_key_file", "ca_file"])
@pytest.mark.parametrize("content", [None, b"", b"not PEM", b"\0\xff"])
def test_a_file_that_is_missing_or_no_PEM(
    setting: str, content: bytes | None, tmp_path: Path
) -> None:
    file = tmp_path / "file"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(ConfigError, match=rf"transport\.grpc\..*{setting}"):
        start(certificate_of("a") | {setting: str(file)})


def test_a_key_of_another_certificate() -> None:
    other = certificate_of("b")["private_key_file"]
    with pytest.raises(ConfigError, match=r"transport\.grpc\.private_key_file.*not the key"):
        start(certificate_of("a") | {"private_key_file": other})


def test_a_key_with_a_password(tmp_path: Path) -> None:
    settings = certificate_of("a")
    key = serialization.load_pem_private_key(
        Path(settings["private_key_file"]).read_bytes(), password=None
    )
    file = tmp_path / "key.pem"
    file.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"secret"),
        )
    )
    with pytest.raises(ConfigError, match=r"private_key_file.*not encrypted"):
        start(settings | {"private_key_file": str(file)})


def test_our_own_certificate_has_expired() -> None:
    settings = common_authority().issue("a", expired=True)
    with pytest.raises(ConfigError, match=r"transport\.grpc\.certificate_file.*expired"):
        start(settings)


def test_our_own_certificate_is_of_another_authority(tmp_path: Path) -> None:
    settings = certificate_of("a") | {"ca_file": str(Authority(tmp_path).file)}
    with pytest.raises(ConfigError, match=r"certificate_file.*\(ca_file\)"):
        start(settings)


def test_our_own_certificate_is_self_signed(tmp_path: Path) -> None:
    """A certificate that signs itself is taken only if it is its own authority."""
    authority = Authority(tmp_path, "a")
    with pytest.raises(ConfigError, match=r"certificate_file.*self-signed"):
        start(authority.itself() | {"ca_file": str(common_authority().file)})
    start(authority.itself())


def test_our_own_certificate_names_somebody_else() -> None:
    with pytest.raises(ConfigError, match=r"names \['b'\] and not 'a'"):
        start(certificate_of("b"))
    with pytest.raises(ConfigError, match=r"names \['a'\] and not '127\.0\.0\.1'"):
        start(certificate_of("a") | {"identity": "host"})


def test_a_node_that_no_certificate_can_name() -> None:
    with pytest.raises(ConfigError, match=r"node\.id"):
        make("a b", certificate_of("a"))
    make("a b", certificate_of("a") | {"identity": "host"})


# -- peers ------------------------------------------------------------------------------------


class TestPeers(GrpcDetails):
    async def _reaches(self, a: Transport, b: Transport) -> None:
        await a.send(b.contact, b"secret", lane=Lane.DATA)
        assert (await self.next_frame(b, Lane.DATA)).payload == b"secret"

    async def _is_refused(self, a: Transport, to: Peer, *expected: str) -> None:
        """Check that ``a`` is told why, in a time that is bounded, and that nothing hangs."""
        await a.send(to, b"secret", lane=Lane.DATA)
        reason = await self.refusal(a)
        for words in expected:
            assert words in reason
        assert any(expected[0] in problem for problem in a.health().problems)

    @check
    async def test_a_certificate_that_has_expired(self) -> None:
        expired = common_authority().issue("b", expired=True)
        async with make("a", certificate_of("a")) as a, careless("b", expired) as b:
            await self._is_refused(a, b.contact, "has expired", "certificate_file")
            await self._is_refused(b, a.contact, "does not trust our certificate", "expired")

    @check
    async def test_a_certificate_of_another_authority(self) -> None:
        folder = common_authority().folder / "others"
        folder.mkdir(exist_ok=True)
        foreign = Authority(folder, "others").issue("b")
        foreign["ca_file"] = str(common_authority().file)
        async with make("a", certificate_of("a")) as a, careless("b", foreign) as b:
            await self._is_refused(a, b.contact, "transport.grpc.ca_file")
            await self._is_refused(b, a.contact, "does not trust our certificate", "ca_file")

    @check
    async def test_a_certificate_that_signs_itself(self) -> None:
        folder = common_authority().folder / "self"
        folder.mkdir(exist_ok=True)
        own = Authority(folder, "b").itself() | {"ca_file": str(common_authority().file)}
        async with make("a", certificate_of("a")) as a, careless("b", own) as b:
            await self._is_refused(a, b.contact, "self-signed", "transport.grpc.ca_file")
            await self._is_refused(b, a.contact, "does not trust our certificate")

    @check
    async def test_a_certificate_of_somebody_else(self) -> None:
        async with make("a", certificate_of("a")) as a, careless("b", certificate_of("c")) as b:
            await self._is_refused(a, b.contact, "names somebody else", "transport.grpc.identity")
            await self._is_refused(b, a.contact, "names 'c' and not 'b'")

    @check
    async def test_names_that_are_not_allowed(self) -> None:
        listed = certificate_of("a") | {"allowed_names": ["c"]}
        async with (
            make("a", listed) as a,
            make("b", certificate_of("b")) as b,
            make("c", certificate_of("c")) as c,
        ):
            await self._is_refused(a, b.contact, "transport.grpc.allowed_names")
            await self._is_refused(b, a.contact, "'b' is not in transport.grpc.allowed_names")
            await self._reaches(a, c)
            await self._reaches(c, a)
            assert a.statistics().lanes[Lane.DATA].rejected_frames >= 1

    @check
    async def test_a_plaintext_peer_at_a_TLS_endpoint(self) -> None:
        async with make("a", {}, "grpc://127.0.0.1:0") as a, make("b", certificate_of("b")) as b:
            address = b.contact.address.replace("grpcs://", "grpc://")
            await self._is_refused(a, Peer(b.contact.id, address), "use grpcs:// too")
            assert await self.quiet(b, Lane.DATA) == []

    @check
    async def test_a_TLS_peer_at_a_plaintext_endpoint(self) -> None:
        async with make("a", certificate_of("a")) as a, make("b", {}, "grpc://127.0.0.1:0") as b:
            address = b.contact.address.replace("grpc://", "grpcs://")
            await self._is_refused(a, Peer(b.contact.id, address), "speaks plaintext")

    @check
    async def test_a_node_that_cannot_be_certified(self) -> None:
        async with make("a", certificate_of("a")) as a:
            await self._is_refused(a, Peer(NodeId("x y"), "grpcs://127.0.0.1:1"), "'x y' cannot be")

    @check
    async def test_hosts_as_identities(self) -> None:
        by_host = common_authority().issue("host", [x509.DNSName("localhost")])
        section = by_host | {"identity": "host", "allowed_names": ["localhost"]}
        url = "grpcs://localhost:0"
        async with make("a", section, url) as a, make("b", section, url) as b:
            await self._reaches(a, b)
            await self._reaches(b, a)

    @check
    async def test_a_URI_and_a_common_name_on_the_list(self) -> None:
        names = [x509.DNSName("a"), x509.UniformResourceIdentifier("spiffe://mesh/a")]
        with_uri = common_authority().issue("somebody", names)
        for allowed in ("spiffe://mesh/a", "somebody"):
            listed = certificate_of("b") | {"allowed_names": [allowed]}
            async with make("a", with_uri) as a, make("b", listed) as b:
                await self._reaches(a, b)
