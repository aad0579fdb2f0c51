"""CURVE on the mesh: who is let in, who is not, and what each of the two is told."""

from pathlib import Path
from typing import Any

import pytest
import zmq
from zmq.utils import z85

from dsp.config import TransportConfig, ZmqConfig
from dsp.core.types import Lane, NodeId, Peer
from dsp.errors import ConfigError, PeerUnreachable
from dsp.testing.contract.harness import check
from dsp.transport.base import Transport
from dsp.transport.zmq.address import Address
from dsp.transport.zmq.wire import Hello, Kind, encode_hello
from tests.contract.zmq_trouble import LOCAL, Keys, MeshHarness, MeshSessions, mesh, stranger


@pytest.fixture
def keys(tmp_path: Path) -> Keys:
    return Keys(tmp_path)


# -- key files ------------------------------------------------------------------------------------


def refusal_of(**settings: Any) -> str:  # noqa: ANN401
    with pytest.raises(ConfigError) as refusal:
        mesh(TransportConfig(url=LOCAL, zmq=ZmqConfig(**settings)))
    return str(refusal.value)


def test_a_key_file_that_is_missing(tmp_path: Path) -> None:
    said = refusal_of(curve_secret_key_file=str(tmp_path / "none"))
    assert said.startswith("transport.zmq.curve_secret_key_file: ")
    assert said.endswith("none: No such file or directory")


def test_a_key_file_that_is_open_to_others(keys: Keys) -> None:
    assert keys["a"]
    path = keys.folder / "a"
    for mode in (0o640, 0o604, 0o660):
        path.chmod(mode)
        assert f"open to other users; run: chmod 600 {path}" in refusal_of(
            curve_secret_key_file=str(path)
        )


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "holds 0 keys"),
        (b"# a comment\n", "holds 0 keys"),
        (b"\xff\xfe\0garbage", "neither hexadecimal nor Z85"),
        (b"hunter2hunter2", "neither hexadecimal nor Z85"),
        (b"0" * 62, "64 hexadecimal digits"),
        (b"0" * 64 + b"\n" + b"1" * 64, "holds 2 keys"),
        (b"~" * 40, "neither hexadecimal nor Z85"),
        (b"0" * 10_000, "64 hexadecimal digits"),
    ],
)
def test_a_key_file_that_holds_garbage(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "key"
    path.touch(mode=0o600)
    path.write_bytes(content)
    told = refusal_of(curve_secret_key_file=str(path))
    assert said in told
    assert content.decode(errors="replace")[:6] not in told or not content, "it quotes a secret"


def test_allow_lists_that_hold_garbage(keys: Keys, tmp_path: Path) -> None:
    assert keys["a"]
    own = {"curve_secret_key_file": str(keys.folder / "a")}
    assert "allowed_keys[1]: not a key" in refusal_of(**own, allowed_keys=(keys["b"], "nonsense"))
    assert "is not a directory" in refusal_of(**own, allowed_keys_directory=str(tmp_path / "no"))
    (tmp_path / "bad.pub").write_text("nonsense")
    told = refusal_of(**own, allowed_keys_directory=str(tmp_path))
    assert "allowed_keys_directory: " in told
    assert "bad.pub: not a key" in told


# -- connections ----------------------------------------------------------------------------------


class TestKeys(MeshHarness):
    @pytest.fixture(autouse=True)
    def _keys(self, keys: Keys) -> None:
        self.keys = keys

    def with_key(self, name: str, *allowed: str) -> Transport:
        return self.make(name, **self.keys.config(name, *allowed))

    async def serve_good(self, tried: Transport) -> None:
        """Check that an endpoint serves a peer that it trusts."""
        async with self.with_key("good", "a", "b") as good:
            await self.echo(good, tried)

    @check
    async def test_keys_on_each_others_lists(self) -> None:
        async with self.with_key("a", "b") as a, self.with_key("b", "a") as b:
            await self.echo(a, b)
            assert a.statistics().faults == b.statistics().faults == {}

    @check
    async def test_a_wrong_key_in_a_peers_address(self) -> None:
        async with (
            self.with_key("a", "b", "wrong") as a,
            self.with_key("b", "a", "good") as b,
        ):
            wrong = b.contact.address.replace(self.keys["b"], self.keys["wrong"])
            for lane in Lane:
                await self.is_refused(a, Peer(b.contact.id, wrong), "key in its address", lane)
            await self.fault(b, "failed handshake")
            await self.serve_good(b)
            # The right address is tried at once, whatever was said about the wrong one.
            await self.echo(a, b)

    @check
    async def test_our_key_is_not_on_the_peers_list(self) -> None:
        async with self.with_key("a", "b") as a, self.with_key("b", "good") as b:
            for lane in Lane:
                await self.is_refused(a, b.contact, "does not accept our key: .*allowed_keys", lane)
            await self.fault(b, "unknown key")
            await self.serve_good(b)

    @check
    async def test_a_peers_key_is_not_on_our_list(self) -> None:
        async with self.with_key("a", "good") as a, self.with_key("b", "a") as b:
            await self.check_unreachable(a, b.contact, "its key is not on our list: add it")
            await self.serve_good(a)

    @check
    async def test_a_plaintext_peer_dials_an_endpoint_with_a_key(self) -> None:
        async with self.make("a") as a, self.with_key("b", "good") as b:
            await self.check_unreachable(a, b.contact, "asks for CURVE.*dsp keygen")
            # Somebody strips the key from the address: the endpoint itself refuses.
            plain, _, _ = b.contact.address.partition("&curve")
            for lane in Lane:
                stripped = Peer(b.contact.id, plain)
                await self.is_refused(a, stripped, "one end uses CURVE and the other", lane)
            await self.fault(b, "failed handshake")
            await self.serve_good(b)

    @check
    async def test_an_endpoint_with_a_key_dials_a_plaintext_peer(self) -> None:
        async with self.with_key("a", "b", "good") as a, self.make("b") as b, self.make("c") as c:
            await self.check_unreachable(a, b.contact, "has no CURVE key")
            claimed = Peer(b.contact.id, f"{b.contact.address}&curve={self.keys['b']}")
            # Which of the two hangs up first decides who knows more.
            await self.is_refused(a, claimed, "one end uses CURVE and the|it does not use CURVE")
            await self.fault(b, "failed handshake")
            await self.serve_good(a)
            await self.echo(b, c)

    @check
    async def test_an_allowed_key_that_claims_the_address_of_another(self) -> None:
        async with self.with_key("b", "thief", "good") as b:
            claimed = f"zmq+tcp://127.0.0.1:9?data=10&curve={self.keys['good']}"
            async with stranger(zmq.DEALER) as thief:
                self.arm(thief, "thief", b)
                await thief.send_multipart(self.hello_from("good", claimed))
                answer = await self.soon(thief.recv_multipart(), "a refusal")
                assert b"is not the one that it came with" in answer[1]
            await self.fault(b, "bad hello")
            await self.serve_good(b)

    @check
    async def test_an_identity_cannot_be_taken_over(self) -> None:
        """A connection under the identity of one that was let in is not taken for that one."""
        async with self.with_key("b", "thief", "good") as b:
            for name in ("good", "thief"):
                async with stranger(zmq.DEALER) as socket:
                    socket.setsockopt(zmq.ROUTING_ID, b"chosen")
                    self.arm(socket, name, b)
                    address = f"zmq+tcp://127.0.0.1:9?data=10&curve={self.keys[name]}"
                    await socket.send_multipart(self.hello_from(name, address))
                    await socket.send(b"in the name of another")
                    answer = await self.soon(socket.recv_multipart(), "a refusal")
                    assert b"chose an identity" in answer[1]
            assert await self.quiet(b, Lane.DATA) == []
            await self.serve_good(b)

    async def check_unreachable(self, sender: Transport, to: Peer, because: str) -> None:
        """Check that a peer is refused by ourselves, before anything is sent."""
        with pytest.raises(PeerUnreachable, match=because):
            await sender.send(to, b"refused", lane=Lane.DATA)

    def arm(self, socket: Any, name: str, to: Transport) -> None:  # noqa: ANN401
        """Connect a socket to the DATA lane with somebody's key."""
        public, secret = self.keys[name], (self.keys.folder / name).read_text().split()[-1]
        socket.curve_publickey = z85.encode(bytes.fromhex(public))
        socket.curve_secretkey = z85.encode(bytes.fromhex(secret))
        socket.curve_serverkey = z85.encode(bytes.fromhex(self.keys["b"]))
        socket.connect(Address.parse(to.contact.address).endpoint(Lane.DATA))

    def hello_from(self, name: str, address: str) -> list[bytes]:
        """Make a hello that says to live somewhere."""
        return encode_hello(Kind.HELLO, Lane.DATA, Hello(Peer(NodeId(name), address), 4096))


class TestKeysThroughSessions(MeshSessions, TestKeys):
    """The same through sessions: what an adapter refuses in ``send`` comes back, promptly."""

    async def check_unreachable(self, sender: Transport, to: Peer, because: str) -> None:
        await self.is_refused(sender, to, because)
