"""A transport for dsp over plain TCP, as a package of its own: ``tcp://host:port``."""

from .endpoint import TcpTransport

__all__ = ["TcpTransport"]
