"""What goes wrong with a broker for tests."""

from dsp.errors import DspError

__all__ = ["KafkaUnavailable", "KafkaStartError"]


class KafkaUnavailable(DspError):
    """Kafka cannot be had on this machine: no Java, or no jars.

    Args:
        missing: what could not be had, and why.
        remedy: what to do about it.
    """

    def __init__(self, missing: str, remedy: str) -> None:
        super().__init__(f"{missing}; to have it: {remedy}")
        self.missing = missing
        self.remedy = remedy


class KafkaStartError(DspError):
    """A broker was started and did not come up; the message ends with the end of its log."""
