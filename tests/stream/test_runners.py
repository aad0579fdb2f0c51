"""Where bodies run: quick ones on the loop, slow ones away from it."""

import threading

import pytest

from dsp.stream.runners import FIRST_PENANCE, LOOK_BACK, ThreadRunner


class Clock:
    """Time that passes when a body says so: what a busy machine does to it decides nothing."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def make(threads: int, inline_time: float) -> tuple[ThreadRunner, Clock]:
    clock = Clock()
    return ThreadRunner(threads, "tried", inline_time, clock=clock), clock


async def on_the_loop(runner: ThreadRunner, clock: Clock, seconds: float = 0.0) -> bool:
    def work() -> int:
        clock.now += seconds
        return threading.get_ident()

    return await runner.call(work, 1) == threading.get_ident()


@pytest.mark.asyncio
async def test_a_body_is_known_before_it_runs_on_the_loop() -> None:
    runner, clock = make(1, 1.0)
    assert [await on_the_loop(runner, clock) for _ in range(LOOK_BACK)] == [False] * LOOK_BACK
    assert await on_the_loop(runner, clock)
    await runner.close()


@pytest.mark.asyncio
async def test_a_body_that_becomes_slow_goes_to_a_thread() -> None:
    runner, clock = make(1, 0.002)
    for _ in range(LOOK_BACK + 1):
        await on_the_loop(runner, clock)
    assert await on_the_loop(runner, clock, 0.06)
    assert not any([await on_the_loop(runner, clock) for _ in range(FIRST_PENANCE)])
    await runner.close()


@pytest.mark.asyncio
async def test_slow_bodies_several_threads_and_no_inline_time_mean_threads() -> None:
    for threads, inline_time, seconds in ((1, 0.001, 0.005), (2, 1.0, 0.0), (1, 0.0, 0.0)):
        runner, clock = make(threads, inline_time)
        ways = [await on_the_loop(runner, clock, seconds) for _ in range(3 * LOOK_BACK)]
        assert not any(ways)
        await runner.close()
