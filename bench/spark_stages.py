"""Ways to put batches of 1,000 records through Spark, side by side in one run, as ratios.

    python bench/spark_stages.py [--json] [--runs 3] [--seconds 3] [--every 0.2] [--only NAME]

The work: filter, a computed column, a broadcast join. Full load: all batches are there at once, and
every way has as many as keep it busy for some seconds; the first fifth of them is not counted, as
pipelines and queries start then. Latency: a batch is offered every so many
seconds, each way takes what waits, and a batch is through when its last record came out. Ways take
turns, so that what else the machine does hits all of them alike; figures are medians. Starting
Spark is not timed, and every way has a run before that warms it up.
"""

import argparse
import json
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from bench.stage_parts.by_hand import Jobs, Prepared  # noqa: E402 - the path is set above
from bench.stage_parts.in_dsp import Stage  # noqa: E402
from bench.stage_parts.streaming import Query  # noqa: E402
from bench.stage_parts.work import Figures, Offer, Way, make_batches  # noqa: E402
from dsp.spark import SparkSettings, hold  # noqa: E402

MANY = 100
# Batches that warm a way up, and with which its rate is looked for.
FIRST = 10
MOST = 3000


def main() -> None:
    """Run all ways, and print what they did."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--json", action="store_true", help="print JSON instead of text")
    parser.add_argument("--runs", type=int, default=3, help="of each way under full load")
    parser.add_argument("--seconds", type=float, default=3, help="of such a run, about")
    parser.add_argument("--every", type=float, default=0.2, help="seconds between two batches")
    parser.add_argument("--offered", type=int, default=40, help="batches, for latency")
    parser.add_argument("--master", default="local[2]")
    parser.add_argument(
        "--only", nargs="+", default=[""], help="ways whose names have one of these"
    )
    options = parser.parse_args()
    lease = hold(SparkSettings(options.master))
    session = lease.session
    ways: list[Way] = [
        Jobs(session, 1),
        Prepared(session, 1, 1),
        Jobs(session, MANY),
        Prepared(session, MANY, 1),
        Prepared(session, MANY, 2),
        Query(session, "files"),
        Query(session, "Python"),
        Stage(session),
    ]
    ways = [way for way in ways if any(each in way.name for each in options.only)]
    batches = make_batches(MOST)
    found = {way.name: Figures() for way in ways}
    counts = {way.name: warmed(way, batches, options.seconds) for way in ways}
    for _ in range(options.runs):
        for way in ways:
            count = counts[way.name]
            found[way.name].rates.append(timed(way, batches[:count]).rate)
    for way in ways:
        say(f"latency of {way.name}")
        offer = Offer(options.offered, options.every)
        way.run(batches[: options.offered], offer)
        found[way.name].latencies = offer.latencies
    for way in ways:
        way.close()
    lease.release()
    report(found, as_json=options.json)


def say(line: str) -> None:
    """Tell how far it is."""
    print(f"[stages] {line}", file=sys.stderr, flush=True)


def timed(way: Way, batches: list) -> Offer:  # type: ignore[type-arg]
    """Run a way under full load, and see that nothing is lost."""
    offered = Offer(len(batches), 0)
    rows = way.run(batches, offered)
    wanted = sum(int((batch.column("fare").to_numpy() > 5).sum()) for batch in batches)
    if rows != wanted:
        raise SystemExit(f"{way.name}: {rows} records came out, not {wanted}")
    return offered


def warmed(way: Way, batches: list, seconds: float) -> int:  # type: ignore[type-arg]
    """Give how many batches keep a way busy for so long."""
    count = FIRST
    timed(way, batches[:count])
    while True:
        offered = timed(way, batches[:count])
        took = offered.ended - offered.began
        say(f"{way.name}: {count} batches in {took:.2f} s")
        if count == MOST or took >= seconds:
            return count
        count = min(MOST, max(2 * count, int(0.8 * count * seconds / took)))


def report(found: dict[str, Figures], *, as_json: bool) -> None:
    """Print a table, or JSON."""
    values = {name: figures.values() for name, figures in found.items()}
    rates = {name: each["rate"] for name, each in values.items()}
    naive, ours = rates.get("job per batch"), rates.get(Stage.name)
    best = max((rate for name, rate in rates.items() if name != Stage.name), default=0)
    ratios = {}
    if ours and naive and best:
        ratios = {"to the naive job": round(ours / naive, 2), "to the best": round(ours / best, 2)}
    if as_json:
        print(json.dumps({"ways": values, "ratios": ratios}))
        return
    print(f"{'way':52} {'k records/s':>12} {'p50 ms':>8} {'p99 ms':>8}")
    for name, each in values.items():
        print(f"{name:52} {each['rate'] / 1e3:12.1f} {each['p50_ms']:8.1f} {each['p99_ms']:8.1f}")
    for name, ratio in ratios.items():
        print(f"dsp.spark.stage {name}: {ratio}")


if __name__ == "__main__":
    main()
