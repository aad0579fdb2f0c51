"""The size of jobs: what is chosen for clusters that are quick, slow, and busy."""

from collections.abc import Callable
from random import Random

import pytest

from dsp.spark.stage_pace import Pace

MOST = 100_000


def settled(seconds: Callable[[int], float], *, jobs: int = 100) -> tuple[Pace, list[int]]:
    """Run jobs of the sizes that are asked for; give the sizes of the later ones."""
    pace = Pace(MOST, 0.5)
    sizes = []
    records = 100
    for _ in range(jobs):
        pace.took(records, seconds(records))
        records = pace.records
        sizes.append(records)
    return pace, sizes[jobs // 2 :]


def test_a_job_is_worth_what_it_costs_anyway() -> None:
    pace, sizes = settled(lambda records: 0.02 + 1e-5 * records)
    assert all(7_000 < size < 9_000 for size in sizes)
    assert pace.capacity == pytest.approx(80_000, rel=0.1)


def test_a_job_takes_no_longer_than_it_should() -> None:
    _, sizes = settled(lambda records: 0.2 + 1e-4 * records)
    assert all(2_900 < size < 3_100 for size in sizes)


def test_a_job_that_is_late_without_any_record_takes_many() -> None:
    _, sizes = settled(lambda records: 2.0 + 1e-5 * records)
    assert all(size == MOST for size in sizes)


@pytest.mark.parametrize("seed", range(20))
def test_jobs_that_wait_for_a_core_do_not_become_small(seed: int) -> None:
    random = Random(seed)
    # How long a job waits has nothing to do with how many records it has.
    _, sizes = settled(lambda records: 0.3 + random.uniform(0, 4) + 1e-5 * records)
    assert min(sizes) > 10_000


def test_nothing_is_known_before_the_first_record() -> None:
    pace = Pace(MOST, 0.5)
    pace.took(0, 1.0)
    assert (pace.records, pace.capacity) == (MOST, None)
