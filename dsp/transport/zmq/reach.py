"""Whether we may and can talk to a peer, as far as its address tells."""

from dsp.core.types import Peer
from dsp.errors import PeerUnreachable
from dsp.transport.zmq.address import Address
from dsp.transport.zmq.host import Host

__all__ = ["reachable"]


def reachable(host: Host, peer: Peer) -> Address:
    """Read the address of a peer, and check that we may and can talk to it.

    Raises:
        PeerUnreachable: we cannot, or must not.
    """
    try:
        address = Address.parse(peer.address)
        address.check_reachable()
    except ValueError as error:
        raise PeerUnreachable(f"{peer.id}: {error}") from error
    if host.security is None and address.key is not None:
        raise PeerUnreachable(
            f"{peer}: it asks for CURVE, and this endpoint has no key: name one in "
            f"transport.zmq.curve_secret_key_file (dsp keygen makes one)"
        )
    if host.security is not None and address.key is None:
        raise PeerUnreachable(f"{peer}: it has no CURVE key, and this endpoint talks to none such")
    if host.security is not None and address.key not in host.security.allowed:
        raise PeerUnreachable(
            f"{peer}: its key is not on our list: add it to transport.zmq.allowed_keys"
        )
    return address
