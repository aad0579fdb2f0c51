"""The public test kit: simulated worlds, an explorer of interleavings, a contract for transports.

Nothing here is needed to run an application; everything here is meant for the tests of those who
write one. The pytest plug-in (``dsp.testing.plugin``) gives the fixture ``world``.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dsp.testing.host import Host, HostMain
    from dsp.testing.world import World
    from dsp.transport.sim.conditions import (
        DROP,
        PASS,
        Deliver,
        LinkConditions,
        Packet,
        Rule,
        Verdict,
    )

__all__ = [
    "World",
    "Host",
    "HostMain",
    "LinkConditions",
    "Packet",
    "Rule",
    "Verdict",
    "PASS",
    "DROP",
    "Deliver",
]

_HOME = {
    "World": "dsp.testing.world",
    "Host": "dsp.testing.host",
    "HostMain": "dsp.testing.host",
}


def __getattr__(name: str) -> object:
    # Loaded when asked for: the pytest plug-in lives in this package and must cost nothing.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOME.get(name, "dsp.transport.sim.conditions")), name)
