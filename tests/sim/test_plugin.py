"""The pytest plug-in: many seeds, and failures that say how to replay them."""

import pytest

pytest_plugins = ["pytester"]

FLAKY = """
import asyncio

def test_plain(world):
    assert world.seed != 3

async def test_inside(world):
    await asyncio.sleep(3600)
    assert world.now == 3600
    assert world.seed != 3
"""


def test_a_test_runs_over_many_seeds_and_says_how_to_replay(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(FLAKY)
    result = pytester.runpytest_subprocess("--dsp-seeds", "5")
    result.assert_outcomes(passed=8, failed=2)
    name = "test_a_test_runs_over_many_seeds_and_says_how_to_replay.py"
    for test in ("test_plain", "test_inside"):
        result.stdout.fnmatch_lines(
            [f"seed 3; replay: pytest '{name}::{test}[[]seed3]' --dsp-seed 3"]
        )
    result.stdout.fnmatch_lines(["at 3600.000000 virtual seconds; the last that happened:"])


def test_the_replay_command_runs_just_that(pytester: pytest.Pytester) -> None:
    path = pytester.makepyfile(FLAKY)
    result = pytester.runpytest_subprocess(f"{path.name}::test_inside[seed3]", "--dsp-seed", "3")
    result.assert_outcomes(failed=1)


def test_one_seed_by_default_and_a_marker_for_more(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest

        def test_one(world_seed): assert world_seed in (0, 1)

        @pytest.mark.dsp_seeds(3)
        def test_three(world, world_seed): assert world.seed == world_seed
        """
    )
    pytester.runpytest_subprocess().assert_outcomes(passed=4)
    pytester.runpytest_subprocess("--dsp-seeds", "2").assert_outcomes(passed=4)
    pytester.runpytest_subprocess("--dsp-seed", "9", "-k", "three").assert_outcomes(
        passed=1, deselected=1
    )


def test_a_bad_number_of_seeds_is_refused(pytester: pytest.Pytester) -> None:
    result = pytester.runpytest_subprocess("--dsp-seeds", "0")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--dsp-seeds*"])


def test_pytest_asyncio_in_auto_mode_leaves_worlds_alone(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import asyncio

        async def test_virtual(world):
            await asyncio.sleep(3600)
            assert world.now == 3600

        async def test_real():
            await asyncio.sleep(0)
        """
    )
    pytester.runpytest_subprocess("--asyncio-mode=auto").assert_outcomes(passed=2)
