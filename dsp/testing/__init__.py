"""The public test kit: simulated worlds, an explorer of interleavings, a contract for transports.

Nothing here is needed to run an application; everything here is meant for the tests of those who
write one. The pytest plug-in (``dsp.testing.plugin``) gives the fixture ``world``.
"""

from typing import TYPE_CHECKING

from dsp.lazy import lazy_names

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

# Loaded when asked for: the pytest plug-in lives in this package and must cost nothing.
_HOMES = {
    "World": "world",
    "Host": "host",
    "HostMain": "host",
    "LinkConditions": ".transport.sim.conditions",
    "Packet": ".transport.sim.conditions",
    "Rule": ".transport.sim.conditions",
    "Verdict": ".transport.sim.conditions",
    "PASS": ".transport.sim.conditions",
    "DROP": ".transport.sim.conditions",
    "Deliver": ".transport.sim.conditions",
}

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
