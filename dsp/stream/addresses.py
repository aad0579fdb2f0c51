"""Where instances are."""

from collections.abc import Iterator, MutableMapping

from dsp.core.types import NodeId, Peer
from dsp.errors import CodecError

__all__ = ["Addresses"]


class Addresses(MutableMapping[NodeId, str]):
    """Where instances are: the endpoint of their process, as ``id@address``."""

    def __init__(self) -> None:
        self._peers: dict[NodeId, Peer] = {}

    def peer(self, name: NodeId) -> Peer | None:
        """Give the endpoint of an instance's process."""
        return self._peers.get(name)

    def put(self, name: NodeId, peer: Peer) -> None:
        """Note where an instance is."""
        self._peers[name] = peer

    def at(self, node: NodeId) -> list[NodeId]:
        """The instances of a process."""
        return [name for name, peer in self._peers.items() if peer.id == node]

    def __getitem__(self, name: NodeId) -> str:
        peer = self._peers[name]
        return f"{peer.id}@{peer.address}"

    def __setitem__(self, name: NodeId, value: str) -> None:
        node, found, address = value.partition("@")
        if not found or not node or not address:
            raise CodecError(f"{value!r:.100} is no address of an instance")
        self._peers[name] = Peer(NodeId(node), address)

    def __delitem__(self, name: NodeId) -> None:
        del self._peers[name]

    def __iter__(self) -> Iterator[NodeId]:
        return iter(self._peers)

    def __len__(self) -> int:
        return len(self._peers)
