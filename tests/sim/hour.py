"""An application of 20 nodes that tolerates loss, over an hour; prints the digest of its trace.

Each node tells every other how far it has counted, one frame every 10 s to one of them in turn.
What counts is the newest number, so a lost frame is made good by the next.
"""

import asyncio
import sys

from dsp.core.types import Lane
from dsp.testing import Host, LinkConditions, World
from dsp.transport.base import Frame, Transport
from tests.sim.nodes import endpoint

NODES = 20
HOUR = 3600.0


def run_hour(world: World) -> dict[str, dict[str, int]]:
    """Run the application and give what each node knows of each other one."""
    knowledge: dict[str, dict[str, int]] = {f"n{index}": {} for index in range(NODES)}

    async def node(host: Host) -> None:
        known = knowledge[host.name]

        async def listen(transport: Transport) -> None:
            while True:
                inbound = await transport.receive(Lane.DATA)
                if isinstance(inbound, Frame):
                    sender, count = inbound.sender.id, int(inbound.payload)
                    known[sender] = max(known.get(sender, 0), count)

        async def tell(transport: Transport) -> None:
            others = [peer for name, peer in world.hosts.items() if name != host.name]
            host.random.shuffle(others)
            await asyncio.sleep(host.random.uniform(0, 10))
            for count in range(10_000):
                peer = others[count % len(others)].peer
                await transport.send(peer, b"%d" % count, lane=Lane.DATA)
                await asyncio.sleep(10)

        async with endpoint(host) as transport, asyncio.TaskGroup() as group:
            group.create_task(listen(transport))
            group.create_task(tell(transport))

    for name in knowledge:
        world.add_host(name, node)
    left, right = list(knowledge)[: NODES // 2], list(knowledge)[NODES // 2 :]
    world.run_for(HOUR / 4)
    world.partition(left, right)
    world.run_for(HOUR / 4)
    world.repair(left, right)
    world.run_for(HOUR / 2)
    return knowledge


if __name__ == "__main__":
    with World(int(sys.argv[1]), LinkConditions(loss=0.1, jitter=0.05)) as hour:
        run_hour(hour)
        print(hour.trace.digest, hour.trace.count)
