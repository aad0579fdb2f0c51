"""The same seed gives the same trace, in any process."""

import os
import subprocess
import sys

import pytest

from dsp.core.randomness import derive_random, derive_seed
from dsp.testing import LinkConditions, World
from tests.sim.hour import NODES, run_hour


def digest(seed: int, hash_seed: str) -> str:
    return subprocess.run(
        [sys.executable, "-m", "tests.sim.hour", str(seed)],
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        check=True,
        capture_output=True,
        text=True,
    ).stdout


def test_the_trace_does_not_depend_on_the_hash_seed() -> None:
    digests = {digest(seed=3, hash_seed=hash_seed) for hash_seed in ("0", "1", "4242")}
    assert len(digests) == 1
    assert digests != {digest(seed=4, hash_seed="0")}


@pytest.mark.dsp_seeds(2)
def test_an_hour_of_twenty_nodes_with_loss_and_a_partition(world_seed: int) -> None:
    traces = []
    for _ in range(2):
        with World(world_seed, LinkConditions(loss=0.1, jitter=0.05)) as world:
            knowledge = run_hour(world)
            traces.append((world.trace.digest, world.trace.count))
            lost = sum(entry.kind == "lost" for entry in world.trace)
            frames = sum(entry.kind in ("lost", "cut", "deliver") for entry in world.trace)
    assert traces[0] == traces[1], "a replay must be the same run"
    assert frames == pytest.approx(NODES * 360, abs=NODES)
    assert lost / frames == pytest.approx(0.1 * 0.87, abs=0.02), "a partition hides some losses"
    for node, known in knowledge.items():
        assert len(known) == NODES - 1, f"{node} never heard of some"
        assert min(known.values()) > 360 - 4 * NODES, f"{node} has old news: {known}"


def test_streams_with_different_labels_are_independent_and_stable() -> None:
    assert derive_seed(1, "a", 2) == derive_seed(1, "a", 2)
    values = {derive_seed(*labels) for labels in ((1, "a"), (1, "b"), (2, "a"), (1, "1"), (1, 1))}
    assert len(values) == 5
    assert derive_seed(7, "link", "x") == 7056631207507575806
    assert derive_random(7, "link").random() == derive_random(7, "link").random()
