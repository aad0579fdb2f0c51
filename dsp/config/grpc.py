"""Settings of ``grpc://`` and ``grpcs://``."""

from typing import Literal

from pydantic import Field

from dsp.config.section import Section

__all__ = ["GrpcConfig"]

_MAX_PATH = 4096
_MAX_HOST = 300


class GrpcConfig(Section):
    """The ``[transport.grpc]`` table: certificates, names and signs of life of gRPC endpoints."""

    advertise: str | None = Field(
        default=None,
        max_length=_MAX_HOST,
        description=(
            "Host, or host:port, under which peers reach this endpoint. Needed where the URL has a "
            "wildcard (0.0.0.0 or [::]) or where addresses are translated on the way; without it "
            "peers are told the host of the URL."
        ),
    )
    certificate_file: str | None = Field(
        default=None,
        max_length=_MAX_PATH,
        description=(
            "PEM file with the certificate of this endpoint, followed by those between it and the "
            "authority. Used to listen and to dial, so it must allow both. grpcs:// only."
        ),
    )
    private_key_file: str | None = Field(
        default=None,
        max_length=_MAX_PATH,
        description="PEM file with the key of the certificate, not encrypted. grpcs:// only.",
    )
    ca_file: str | None = Field(
        default=None,
        max_length=_MAX_PATH,
        description=(
            "PEM file with the authorities that sign the certificates of peers; nobody else's are "
            "taken. grpcs:// only."
        ),
    )
    identity: Literal["node", "host"] = Field(
        default="node",
        description=(
            "What the certificate of a peer must name, among its DNS names or as its common name: "
            "the peer's node id ('node'), or the host of the peer's address ('host'). Node ids "
            "keep certificates valid when addresses change; hosts suit certificates that exist "
            "already. All endpoints of a mesh use the same. grpcs:// only."
        ),
    )
    allowed_names: tuple[str, ...] = Field(
        default=(),
        strict=False,
        max_length=10_000,
        description=(
            "Names in certificates whose holders this endpoint talks to; empty allows all that the "
            "authorities have signed. To dial a peer, its node id or host (see identity) must be "
            "here; to be dialled by it, any DNS name, URI or common name of its certificate. "
            "grpcs:// only."
        ),
    )
    keepalive_time: float = Field(
        default=10.0,
        ge=1.0,
        le=3600.0,
        description=(
            "Seconds of silence after which a peer is asked for a sign of life. Shorter notices "
            "sooner that a link is dead; longer saves traffic on metered links."
        ),
    )
    keepalive_timeout: float = Field(
        default=5.0,
        ge=0.1,
        le=600.0,
        description=(
            "Seconds that a peer has to give that sign before the connection counts as lost. "
            "Longer suits slow links."
        ),
    )
