"""Settings of the ZeroMQ mesh."""

from typing import Final

from pydantic import Field

from dsp.config.section import Section

__all__ = ["ZmqConfig"]

_KIB: Final = 1024
_MIB: Final = 1024 * _KIB


class ZmqConfig(Section):
    """The ``[transport.zmq]`` table: the mesh behind zmq+tcp:// and zmq+ipc://."""

    advertise: str | None = Field(
        default=None,
        min_length=1,
        max_length=253,
        pattern=r"^[A-Za-z0-9._:-]+$",
        description=(
            "Name or number of this host as peers reach it, without a port. Needed behind NAT and "
            "on hosts with several networks. Left out, it is the host of transport.url; if that "
            "is a wildcard, the address that this host's default route leaves by."
        ),
    )
    socket_buffer_bytes: int = Field(
        default=256 * _KIB,
        ge=0,
        le=64 * _MIB,
        description=(
            "Bytes of each of the operating system's two buffers per connection; 0 leaves them to "
            "the system. More fills long fast links; fewer bounds memory and leaves less on the "
            "way when a peer dies."
        ),
    )
    curve_secret_key_file: str | None = Field(
        default=None,
        min_length=1,
        max_length=4096,
        description=(
            "File of this endpoint's secret key, made by `dsp keygen`. Naming one turns CURVE on: "
            "everything is encrypted, and peers without CURVE are refused."
        ),
    )
    allowed_keys: tuple[str, ...] = Field(
        default=(),
        strict=False,
        max_length=10_000,
        description=(
            "Public keys of the peers that may talk to this endpoint, in hexadecimal or Z85. "
            "Trust is decided here and in allowed_keys_directory alone, in both directions."
        ),
    )
    allowed_keys_directory: str | None = Field(
        default=None,
        min_length=1,
        max_length=4096,
        description=("Directory whose *.pub files hold more allowed public keys; read at start."),
    )
