"""Settings of sessions, which make any transport reliable and ordered."""

from typing import Final

from pydantic import Field, ValidationInfo, field_validator

from dsp.config.section import Section, between_fields

__all__ = ["SessionConfig"]

_KIB: Final = 1024


class SessionConfig(Section):
    """The ``[transport.session]`` table: when to speak, to suspect, to give up, to repeat."""

    heartbeat_every: float = Field(
        default=1.0,
        ge=0.01,
        le=3600.0,
        description=(
            "Seconds of silence after which a word is sent to each peer that we talk with. Shorter "
            "notices trouble sooner; longer costs weak links less."
        ),
    )
    suspect_after: float = Field(
        default=5.0,
        ge=0.02,
        le=36_000.0,
        description=(
            "Seconds without a word of a peer after which PeerDown is told. A hint: nothing is "
            "given up yet. Above heartbeat_every, or every pause would be a suspicion."
        ),
    )
    dead_after: float = Field(
        default=30.0,
        ge=0.05,
        le=360_000.0,
        description=(
            "Seconds without a word of a peer after which its session is given up and every frame "
            "that it has not acknowledged is told as Undelivered. Longer rides out longer cuts; "
            "shorter lets frames go elsewhere sooner. At least suspect_after."
        ),
    )
    resend_after: float = Field(
        default=0.2,
        ge=0.001,
        le=3600.0,
        description=(
            "Seconds without progress after which what was sent is sent again; doubles up to ten "
            "times that. Above the round trip of the link, or good links carry things twice."
        ),
    )
    coalesce_bytes: int = Field(
        # More than an endpoint lets a task send before others have a turn: what is sent in one turn
        # is one segment, not a large one and a small one.
        default=160 * _KIB,
        ge=0,
        le=1024 * _KIB,
        description=(
            "Bytes of small frames that travel together with one number, if they are sent in one "
            "step of the loop; 0 sends each alone. More costs less per frame; fewer holds up "
            "those behind it for less time."
        ),
    )

    @field_validator("suspect_after", "dead_after")
    @classmethod
    def _in_order(cls, value: float, info: ValidationInfo) -> float:
        shorter = {"suspect_after": "heartbeat_every", "dead_after": "suspect_after"}
        other = shorter[info.field_name or ""]
        # One that is itself wrong is absent here, and reported on its own.
        least = info.data.get(other)
        if least is not None and (value < least or (other == "heartbeat_every" and value == least)):
            raise between_fields(
                f"{value:g} is not above {other} ({least:g})",
                other,
                hint=f"raise it or lower {other}",
            )
        return value
