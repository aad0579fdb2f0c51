"""Large frames of a session over ZeroMQ: in two parts, through a full socket, in order."""

import asyncio

from dsp.config import TransportConfig
from dsp.core.session.wire import SEGMENT_OVERHEAD
from dsp.core.types import Lane, NodeId
from dsp.transport.base import Frame
from dsp.transport.conversing import SPLIT_BYTES
from dsp.transport.registry import create_transport
from dsp.transport.session import Session, create_session

CONFIG = TransportConfig(url="zmq+tcp://127.0.0.1:0")
# Frames that are split, some too small for it, and some in pieces; more than sockets hold.
SIZES = [SPLIT_BYTES, 100, 3 * SPLIT_BYTES, SPLIT_BYTES - 1, 10 * SPLIT_BYTES] * 40


def test_frames_of_all_sizes_arrive_in_order() -> None:
    async def check() -> None:
        async with (
            create_session(CONFIG, NodeId("a")) as a,
            create_session(CONFIG, NodeId("b")) as b,
            asyncio.TaskGroup() as tasks,
        ):

            async def send() -> None:
                for number, size in enumerate(SIZES):
                    payload = number.to_bytes(4, "big") + bytes(size - 4)
                    await a.send(b.contact, payload, lane=Lane.DATA)

            tasks.create_task(send())
            for number, size in enumerate(SIZES):
                inbound = await b.receive(Lane.DATA)
                assert isinstance(inbound, Frame)
                assert inbound.payload == number.to_bytes(4, "big") + bytes(size - 4)

    asyncio.run(check())


def test_what_the_socket_does_not_take_waits_in_the_session() -> None:
    """And not in the adapter too, where it would be put together: in the end all arrives."""

    async def check() -> None:
        below = CONFIG.model_copy(
            update={"max_frame_bytes": CONFIG.max_frame_bytes + SEGMENT_OVERHEAD}
        )
        adapter = create_transport(below, NodeId("a"))
        frame = bytes(2 * SPLIT_BYTES)
        async with (
            Session(adapter, CONFIG, NodeId("a")) as a,
            create_session(CONFIG, NodeId("b")) as b,
        ):
            await a.send(b.contact, b"hello", lane=Lane.DATA)
            await b.receive(Lane.DATA)
            sent = deepest = 0
            # Nobody reads, so a time comes when nothing more is taken.
            try:
                while True:
                    async with asyncio.timeout(1.0):
                        await a.send(b.contact, frame, lane=Lane.DATA)
                    sent += 1
                    lane = adapter.statistics().lanes[Lane.DATA]
                    deepest = max(deepest, lane.send_queue_bytes)
            except TimeoutError:
                pass
            assert sent * len(frame) > CONFIG.receive_queue_bytes
            assert deepest < 6 * SPLIT_BYTES
            for _ in range(sent):
                inbound = await b.receive(Lane.DATA)
                assert isinstance(inbound, Frame)
                assert inbound.payload == frame

    asyncio.run(check())
