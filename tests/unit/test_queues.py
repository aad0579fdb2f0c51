"""Bounded queues: bounds, order of waiters, cancellation, the end."""

import asyncio

import pytest

from dsp.errors import BusyError, ClosedError, WouldBlock
from dsp.transport.queues import BoundedQueue

pytestmark = pytest.mark.asyncio


async def test_bounds_in_items_and_bytes() -> None:
    queue: BoundedQueue[str] = BoundedQueue(max_items=3, max_bytes=10)
    queue.put_nowait("a", 4)
    queue.put_nowait("b", 4)
    with pytest.raises(WouldBlock, match="2 items, 8 bytes"):
        queue.put_nowait("c", 4)
    queue.put_nowait("d", 2)
    with pytest.raises(WouldBlock):
        queue.put_nowait("e", 0)
    assert (len(queue), queue.bytes) == (3, 10)


async def test_an_item_over_the_bound_goes_into_an_empty_queue() -> None:
    queue: BoundedQueue[str] = BoundedQueue(max_items=3, max_bytes=10)
    await queue.put("large", 100)
    assert await queue.get() == "large"


async def test_producers_are_served_in_order() -> None:
    queue: BoundedQueue[int] = BoundedQueue(max_items=1, max_bytes=100)
    queue.put_nowait(0, 1)
    producers = [asyncio.create_task(queue.put(number, 1)) for number in range(1, 5)]
    await asyncio.sleep(0)
    with pytest.raises(WouldBlock):
        queue.put_nowait(99, 1)
    assert [await queue.get() for _ in range(5)] == [0, 1, 2, 3, 4]
    await asyncio.gather(*producers)


async def test_a_small_item_does_not_overtake_a_large_one() -> None:
    queue: BoundedQueue[str] = BoundedQueue(max_items=10, max_bytes=10)
    for name in ("x", "y"):
        queue.put_nowait(name, 5)
    large = asyncio.create_task(queue.put("large", 10))
    small = asyncio.create_task(queue.put("small", 1))
    await asyncio.sleep(0)
    assert queue.get_nowait() == "x"
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not large.done()
    assert not small.done()
    assert [await queue.get() for _ in range(3)] == ["y", "large", "small"]
    await asyncio.gather(large, small)


@pytest.mark.parametrize("woken_first", [False, True])
async def test_a_cancelled_producer_adds_nothing_and_hands_its_turn_on(woken_first: bool) -> None:
    queue: BoundedQueue[str] = BoundedQueue(max_items=1, max_bytes=100)
    queue.put_nowait("first", 1)
    cancelled = asyncio.create_task(queue.put("cancelled", 1))
    second = asyncio.create_task(queue.put("second", 1))
    await asyncio.sleep(0)
    if woken_first:
        assert queue.get_nowait() == "first"
        cancelled.cancel()
    else:
        cancelled.cancel()
        assert queue.get_nowait() == "first"
    await asyncio.wait([cancelled])
    assert cancelled.cancelled()
    assert await queue.get() == "second"
    await second


async def test_a_consumer_cancelled_as_an_item_comes_takes_nothing() -> None:
    queue: BoundedQueue[str] = BoundedQueue(max_items=2, max_bytes=100)
    consumer = asyncio.create_task(queue.get())
    await asyncio.sleep(0)
    queue.put_nowait("item", 1)
    consumer.cancel()
    await asyncio.wait([consumer])
    assert consumer.cancelled()
    assert await queue.get() == "item"


async def test_one_consumer_at_a_time() -> None:
    queue: BoundedQueue[str] = BoundedQueue(max_items=2, max_bytes=100)
    consumer = asyncio.create_task(queue.get())
    await asyncio.sleep(0)
    with pytest.raises(BusyError):
        await queue.get()
    queue.put_nowait("item", 1)
    assert await consumer == "item"


async def test_the_end_reaches_producers_now_and_the_consumer_at_last() -> None:
    queue: BoundedQueue[str] = BoundedQueue(max_items=1, max_bytes=100)
    queue.put_nowait("last", 1)
    waiting = asyncio.create_task(queue.put("never", 1))
    await asyncio.sleep(0)
    queue.end(lambda: ClosedError("over"))
    with pytest.raises(ClosedError):
        await waiting
    with pytest.raises(ClosedError):
        queue.put_nowait("never", 1)
    assert await queue.get() == "last"
    for _ in range(2):
        with pytest.raises(ClosedError, match="over"):
            await queue.get()


async def test_room_is_announced_when_nobody_waits() -> None:
    rooms: list[int] = []
    queue: BoundedQueue[str] = BoundedQueue(1, 100, on_room=lambda: rooms.append(len(queue)))
    queue.put_nowait("a", 1)
    queue.get_nowait()
    assert rooms == [], "nobody asked for room"
    queue.put_nowait("a", 1)
    assert not queue.has_room(1)
    queue.get_nowait()
    assert rooms == [0]
    queue.put_nowait("a", 1)
    queue.notify()
    queue.get_nowait()
    assert rooms == [0, 0]
    assert queue.get_nowait() is None
    assert queue.peek() is None
