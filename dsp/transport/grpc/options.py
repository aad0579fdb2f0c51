"""The options with which channels and servers are made, each for a reason."""

from typing import TYPE_CHECKING

from dsp.transport.grpc.wire import PACK_BYTES

if TYPE_CHECKING:
    from dsp.config import TransportConfig

__all__ = ["channel_options", "server_options"]

Options = list[tuple[str, int | str]]

# A pack holds at most PACK_BYTES, lengths included, or one frame; and a hello is small.
_SLACK = 4096


def _milliseconds(seconds: float) -> int:
    return max(1, round(seconds * 1000))


def _common(config: "TransportConfig") -> Options:
    return [
        ("grpc.max_receive_message_length", max(config.max_frame_bytes, PACK_BYTES) + _SLACK),
        ("grpc.max_send_message_length", -1),  # the peer's limit counts, which its answer tells
        ("grpc.keepalive_time_ms", _milliseconds(config.grpc.keepalive_time)),
        ("grpc.keepalive_timeout_ms", _milliseconds(config.grpc.keepalive_timeout)),
        # Idle links are asked for signs of life like busy ones.
        ("grpc.http2.max_pings_without_data", 0),
    ]


def channel_options(config: "TransportConfig", server_name: str | None) -> Options:
    """Options of a channel, which serves one lane to one peer.

    Args:
        config: the transport's settings.
        server_name: what the certificate of the peer must name; None without TLS.
    """
    options = _common(config)
    options += [
        # A connection of its own for every channel: lanes must not share a flow-control window.
        ("grpc.use_local_subchannel_pool", 1),
        # We dial again ourselves, with a new channel.
        ("grpc.enable_retries", 0),
        # Peers are neighbours: no proxy, and no settings from a name server.
        ("grpc.enable_http_proxy", 0),
        ("grpc.service_config_disable_resolution", 1),
    ]
    if server_name is not None:
        options.append(("grpc.ssl_target_name_override", server_name))
    return options


def server_options(config: "TransportConfig") -> Options:
    """Options of the server."""
    return [
        *_common(config),
        # Two endpoints on one port would take each other's peers; the second must fail.
        ("grpc.so_reuseport", 0),
        # However often a peer asks for a sign of life: it is not an attack.
        ("grpc.http2.min_ping_interval_without_data_ms", 1000),
        ("grpc.http2.max_ping_strikes", 0),
        # Strangers who connect and say nothing are let go.
        ("grpc.server_handshake_timeout_ms", _milliseconds(config.connect_timeout)),
    ]
