"""The comparison of ways to choose an instance: what it runs, and what it finds on few records."""

import subprocess
import sys

import orjson
import pytest

from dsp.errors import ConfigError
from dsp.lab.balance.setting import Setting, make_stream
from dsp.lab.balance.simulator import STRATEGIES, simulate
from dsp.lab.balance.study import jobs_of, run_study
from dsp.lab.balance.whole import WHOLE, simulate_whole

SHORT = Setting(records=1024)


@pytest.mark.parametrize("strategy", [*STRATEGIES, *WHOLE])
def test_every_record_is_executed_and_a_run_is_the_same_again(strategy: str) -> None:
    stream = make_stream(SHORT, 3)
    run = simulate_whole if strategy in WHOLE else simulate
    one, other = (run(SHORT, strategy, stream) for _ in range(2))
    assert one.times == other.times
    costs = [cost for _, _, cost in stream.records]
    # Nothing is through before it came, went to an instance, and was executed there.
    assert all(took >= cost + SHORT.hop - 1e-9 for took, cost in zip(one.times, costs, strict=True))


@pytest.mark.parametrize("load", [0.8, 1.0])
@pytest.mark.parametrize("seed", range(2))
def test_without_a_key_the_least_work_is_better_than_turns(load: float, seed: int) -> None:
    setting = Setting(load=load, skew=0.5, records=2048)
    stream = make_stream(setting, seed)
    turns = simulate_whole(setting, "keyless-turns", stream)
    least = simulate_whole(setting, "keyless", stream)
    best = simulate(setting, "omniscient", stream)
    assert best.mean < least.mean < turns.mean
    # What few records take longest is chance at full load: it may be a tenth worse, not more.
    assert least.p99 < 1.1 * turns.p99


def test_a_slow_instance_gets_less_without_a_key() -> None:
    setting = Setting(load=0.5, records=2048, slows=10.0)
    stream = make_stream(setting, 1)
    turns = simulate_whole(setting, "keyless-turns", stream)
    least = simulate_whole(setting, "keyless", stream)
    # Turns pass over who has no room: so they suffer as long as there is some.
    assert least.mean < turns.mean
    assert least.p99 < 0.5 * turns.p99


def test_a_study_pairs_streams_and_compares_with_turns_where_they_ran() -> None:
    jobs = jobs_of(["keyless-turns", "keyless"], [2], [0.9], [0, 1], records=1024, changes=False)
    study = run_study(jobs)
    mine = [cell for cell in study.cells if cell.strategy == "keyless"]
    assert [cell.skew for cell in mine] == [0.5, 1.0, 1.5, 2.0]
    (summary,) = (one for one in study.summaries if one.strategy == "keyless")
    assert summary.of_turns == max(cell.of_turns or 0.0 for cell in mine)
    alone = run_study(jobs_of(["keyless"], [2], [0.9], [0], records=1024, changes=False))
    assert {cell.of_turns for cell in alone.cells} == {None}


def test_wrong_names_are_told_with_what_there_is() -> None:
    with pytest.raises(ConfigError, match="keyless-turns"):
        jobs_of(["best"], [2], [0.9], [0], records=1024, changes=False)
    with pytest.raises(ConfigError, match="omniscient"):
        simulate(SHORT, "keyless", make_stream(SHORT, 0))
    with pytest.raises(ConfigError, match="keyless-turns"):
        simulate_whole(SHORT, "osg", make_stream(SHORT, 0))


def test_the_command_prints_json() -> None:
    done = subprocess.run(
        [
            sys.executable, "-m", "dsp.cli", "lab", "balance", "--strategies", "keyless",
            "--instances", "2", "--loads", "0.9", "--no-changes", "--records", "1024",
            "--seeds", "1", "--workers", "1", "--json",
        ],
        capture_output=True,
        text=True,
        check=True,
    )  # fmt: skip
    study = orjson.loads(done.stdout)
    names = {cell["strategy"] for cell in study["cells"]}
    assert names == {"round-robin", "keyless", "omniscient"}
