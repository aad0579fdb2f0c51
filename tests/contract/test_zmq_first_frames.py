"""What waits for the first connection goes as soon as it stands, however full its queue is then.

A socket of libzmq's signals a change once, and each call on it may take the signal. A link that
heard its welcome, filled the socket and then listened on, lost the signal that there is room.
"""

import itertools

import pytest

from dsp.core.types import Lane
from dsp.testing.contract.harness import numbered, numbers
from tests.contract.zmq_contract import ZmqHarness, ZmqIpcHarness

ROUNDS = 40
FRAMES = 100


@pytest.mark.parametrize("kind", [ZmqHarness, ZmqIpcHarness])
def test_frames_that_wait_for_the_welcome(kind: type[ZmqHarness]) -> None:
    harness = kind()
    names = itertools.count()

    async def once() -> None:
        async with harness.endpoints("a", f"b{next(names)}") as (a, b):
            for number in range(FRAMES):
                await a.send(b.contact, numbered(number), lane=Lane.DATA)
            assert numbers(await harness.payloads(b, Lane.DATA, FRAMES)) == list(range(FRAMES))

    async def all_rounds() -> None:
        for _ in range(ROUNDS):
            await once()

    harness.run(all_rounds())
