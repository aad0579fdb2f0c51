"""Where bodies run: quick ones on the loop, slow ones away from it."""

import threading
import time

import pytest

from dsp.stream.runners import FIRST_PENANCE, LOOK_BACK, ThreadRunner


async def on_the_loop(runner: ThreadRunner, seconds: float = 0.0) -> bool:
    def work() -> int:
        time.sleep(seconds)
        return threading.get_ident()

    return await runner.call(work, 1) == threading.get_ident()


@pytest.mark.asyncio
async def test_a_body_is_known_before_it_runs_on_the_loop() -> None:
    runner = ThreadRunner(1, "quick", inline_time=1.0)
    assert [await on_the_loop(runner) for _ in range(LOOK_BACK)] == [False] * LOOK_BACK
    assert await on_the_loop(runner)
    await runner.close()


@pytest.mark.asyncio
async def test_a_body_that_becomes_slow_goes_to_a_thread() -> None:
    runner = ThreadRunner(1, "changing", inline_time=0.002)
    for _ in range(LOOK_BACK + 1):
        await on_the_loop(runner)
    while not await on_the_loop(runner, 0.06):
        pass
    assert not any([await on_the_loop(runner) for _ in range(FIRST_PENANCE)])
    await runner.close()


@pytest.mark.asyncio
async def test_slow_bodies_several_threads_and_no_inline_time_mean_threads() -> None:
    for runner, seconds in (
        (ThreadRunner(1, "slow", inline_time=0.001), 0.005),
        (ThreadRunner(2, "several", inline_time=1.0), 0.0),
        (ThreadRunner(1, "never", inline_time=0.0), 0.0),
    ):
        assert not any([await on_the_loop(runner, seconds) for _ in range(3 * LOOK_BACK)])
        await runner.close()
