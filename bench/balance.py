"""What it costs to choose a successor, per record.

    python bench/balance.py [--json] [--batch 256] [--instances 8] [--rounds 400]

The machines that the engine asks, with batches of keys as it hands them over: a stream of zipf 1.0
over 1,024 keys, and one in which no key comes twice. Executed records are told before each batch,
and matrices of every instance come once in 40 batches, which makes all estimates be read anew.
CPU time, the best of five.
"""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random
from time import process_time

import orjson

sys.path.insert(0, str(Path(__file__).parent.parent))

from dsp.balance.estimates import Costs
from dsp.balance.events import Departing, Matrices, Offered, Worked
from dsp.balance.hashing import HashFamily
from dsp.balance.machine_adaptive import AdaptiveScheduler
from dsp.balance.machine_osg import OsgScheduler
from dsp.balance.settings import BalanceSettings
from dsp.core.machine import Received
from dsp.core.types import NodeId

EVERY = 40
Choose = Callable[[list[bytes]], object]


def matrices(settings: BalanceSettings) -> Matrices:
    """What an instance that saw every key tells."""
    costs = Costs(HashFamily(settings.rows, settings.columns, settings.seed))
    costs.add([b"%d" % n for n in range(1024)], [(1 + n % 64) / 1000 for n in range(1024)])
    return costs.matrices()


def streams(batch: int, rounds: int) -> dict[str, list[list[bytes]]]:
    """Make batches of keys."""
    random = Random(1)
    weights = [1 / rank for rank in range(1, 1025)]
    drawn = random.choices(range(1024), weights, k=batch * rounds)
    zipf = [b"%d" % value for value in drawn]
    fresh = [b"key %d" % number for number in range(batch * rounds)]
    return {
        name: [keys[i : i + batch] for i in range(0, len(keys), batch)]
        for name, keys in (("zipf 1.0", zipf), ("all different", fresh))
    }


def choosers(names: list[NodeId], batch: int) -> dict[str, Choose]:
    """Make what is compared."""
    settings = BalanceSettings()
    told = matrices(settings)
    each = batch // len(names)
    osg, adaptive = OsgScheduler(settings, names), AdaptiveScheduler(settings, names)
    turn = rounds = 0

    def round_robin(keys: list[bytes]) -> object:
        nonlocal turn
        targets = [names[(turn + place) % len(names)] for place in range(len(keys))]
        turn += len(keys)
        return targets

    def by_osg(keys: list[bytes]) -> object:
        nonlocal rounds
        rounds += 1
        if rounds % EVERY == 1:
            for name in names:
                osg.handle(Received(name, told), 0.0)
        chosen = osg.handle(Offered(keys), 0.0)
        for name in names:
            osg.handle(Departing(name), 0.0)
        return chosen

    def by_adaptive(keys: list[bytes]) -> object:
        nonlocal rounds
        rounds += 1
        if rounds % EVERY == 1:
            for name in names:
                adaptive.handle(Received(name, told), 0.0)
        for name in names:
            adaptive.handle(Worked(name, each), 0.0)
        return adaptive.handle(Offered(keys), 0.0)

    return {"round-robin": round_robin, "osg": by_osg, "adaptive": by_adaptive}


def nanoseconds(choose: Choose, batches: list[list[bytes]]) -> float:
    """CPU time per record."""
    began = process_time()
    for keys in batches:
        choose(keys)
    return 1e9 * (process_time() - began) / sum(map(len, batches))


def main() -> None:
    """Print what was measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--instances", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=400)
    options = parser.parse_args()
    names = [NodeId(f"b.{number}") for number in range(options.instances)]
    found: dict[str, dict[str, float]] = {}
    for stream, batches in streams(options.batch, options.rounds).items():
        found[stream] = {}
        for name in ("round-robin", "osg", "adaptive"):
            runs = []
            for _ in range(5):
                choose = choosers(names, options.batch)[name]
                runs.append(nanoseconds(choose, batches))
            found[stream][name] = min(runs)
    if options.json:
        print(orjson.dumps(found).decode())
        return
    for stream, figures in found.items():
        for name, value in figures.items():
            ratio = value / figures["round-robin"]
            print(f"{stream:14} {name:12} {value:6.0f} ns per record, {ratio:.1f} of round-robin")


if __name__ == "__main__":
    main()
