"""A read that is cancelled in any moment loses nothing: the next one gets what it took."""

import asyncio

import pytest

from dsp.stream.sources.blocking import Kept

pytestmark = pytest.mark.asyncio


@pytest.mark.parametrize("steps", range(6))
async def test_what_a_cancelled_read_took_comes_with_the_next(steps: int) -> None:
    kept: Kept[int] = Kept()
    given: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    begun = 0

    async def take() -> int:
        nonlocal begun
        begun += 1
        return await given

    reading = asyncio.ensure_future(kept.get(take))
    await asyncio.sleep(0)
    given.set_result(7)
    for _ in range(steps):
        await asyncio.sleep(0)
    reading.cancel()
    await asyncio.wait([reading])
    if reading.cancelled():
        assert await kept.get(take) == 7
    else:
        assert reading.result() == 7
    assert begun == 1


async def test_a_read_that_fails_is_begun_anew() -> None:
    kept: Kept[int] = Kept()

    async def fail() -> int:
        raise OSError("gone")

    async def succeed() -> int:
        return 1

    with pytest.raises(OSError, match="gone"):
        await kept.get(fail)
    assert await kept.get(succeed) == 1
