"""Transports against the libraries below them, side by side in one run, as ratios.

    python bench/transport.py [--json] [--runs 9] [--seconds 1.0] [--only zmq grpc kafka] [--sizes]
                              [--loads "256 x 100 B" answers] [--contenders zmq grpc kafka]

Two processes on loopback for each run; contenders take turns, so that what else the machine does
hits all of them alike. Figures are medians.
"""

import argparse
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import orjson

sys.path.insert(0, str(Path(__file__).parent.parent))

from dsp.lab.transport.load import Load, LoadKind
from dsp.lab.transport.pair import Contender
from dsp.lab.transport.suite import LOADS, Result, contender, measure
from dsp.lab.transport.table import rows

ZMQ = "zmq+tcp://127.0.0.1:0"
RAW_SYNC, RAW_ASYNCIO = "raw pyzmq", "raw zmq.asyncio"
RAW_GRPC, RAW_KAFKA = "raw grpc.aio", "raw aiokafka"
KINDS = ("zmq", "grpc", "kafka")


def zmq_contenders(keys: Path) -> list[Contender]:
    """pyzmq itself, and the mesh with and without CURVE."""
    from dsp.transport.zmq.keys import write_key_pair

    write_key_pair(keys / "bench")
    curve = {"curve_secret_key_file": str(keys / "bench")}
    flow, answers = (LoadKind.FLOW,), (LoadKind.FLOW, LoadKind.ANSWERS)
    return [
        Contender(RAW_SYNC, "bench.raw.over_zmq", {"style": "sync"}, {"style": "sync"}, flow),
        Contender(
            RAW_ASYNCIO, "bench.raw.over_zmq", {"style": "asyncio"}, {"style": "asyncio"}, answers
        ),
        contender("zmq", {"url": ZMQ}),
        contender("zmq, no session", {"url": ZMQ}, session=False),
        contender("zmq with CURVE", {"url": ZMQ, "zmq": curve}),
    ]


def grpc_contenders() -> list[Contender]:
    """grpc.aio itself, and streams behind the seam."""
    raw = Contender(RAW_GRPC, "bench.raw.over_grpc", kinds=(LoadKind.FLOW, LoadKind.ANSWERS))
    return [raw, contender("grpc", {"url": "grpc://127.0.0.1:0"})]


def kafka_contenders(bootstrap: str) -> list[Contender]:
    """aiokafka itself, and inboxes behind the seam."""
    order = {"bootstrap": bootstrap}
    return [
        Contender(RAW_KAFKA, "bench.raw.over_kafka", order, order, (LoadKind.FLOW,)),
        contender("kafka", {"url": f"kafka://{bootstrap}/bench"}),
    ]


SIZES = [
    Load(LoadKind.FLOW, size, batch)
    for size in (100, 1024)
    for batch in (1, 64, 256, 1024)
    if (size, batch) not in {(100, 1), (100, 256), (1024, 256)}
]
"""What ``--sizes`` adds to the usual loads."""

GOALS = (
    # load, contender, base, at least (a rate) or at most (a round trip)
    ("256 x 100 B", "zmq", RAW_SYNC, 0.65),
    ("256 x 100 B", "zmq", RAW_ASYNCIO, 1.0),
    ("256 x 1024 B", "zmq", RAW_SYNC, 0.75),
    ("1 x 100 B", "zmq", RAW_ASYNCIO, 4.0),
    ("answers", "zmq", RAW_ASYNCIO, 1.5),
    ("256 x 100 B", "grpc", RAW_GRPC, 0.75),
    ("256 x 100 B", "kafka", RAW_KAFKA, 0.75),
)


def contenders(kinds: Sequence[str], stack: ExitStack) -> list[Contender]:
    """Make what is to be measured; what has to be stopped afterwards goes onto the stack."""
    found: list[Contender] = []
    if "zmq" in kinds:
        found += zmq_contenders(Path(stack.enter_context(tempfile.TemporaryDirectory())))
    if "grpc" in kinds:
        found += grpc_contenders()
    if "kafka" in kinds:
        from dsp.testing.kafka import KafkaUnavailable, start_broker

        try:
            broker = stack.enter_context(start_broker())
            found += kafka_contenders(broker.bootstrap)
        except KafkaUnavailable as error:
            print(f"kafka is left out: {error}", file=sys.stderr)
    return found


def verdicts(results: list[Result]) -> list[str]:
    """Say which goals are met."""
    by_key = {(result.load, result.contender): result.median for result in results}
    lines = []
    for load, name, base, goal in GOALS:
        mine, other = by_key.get((load, name)), by_key.get((load, base))
        if mine is None or other is None:
            continue
        if mine.rate is not None and other.rate:
            ratio, met, word = mine.rate / other.rate, mine.rate >= goal * other.rate, "least"
        elif mine.p50 is not None and other.p50:
            ratio, met, word = mine.p50 / other.p50, mine.p50 <= goal * other.p50, "most"
        else:
            continue
        state = "met" if met else "MISSED"
        lines.append(f"{state}: {load}, {name} is {ratio:.2f} of {base} (at {word} {goal})")
    loaded = by_key.get(("loaded answers", "zmq"))
    if loaded is not None and loaded.p99 is not None:
        state = "met" if loaded.p99 < 0.01 else "MISSED"
        lines.append(f"{state}: CONTROL beside full DATA, p99 {loaded.p99 * 1e3:.1f} ms (10)")
    clog = by_key.get(("clog", "zmq"))
    if clog is not None and clog.resident_mib is not None:
        state = "met" if max(clog.resident_mib) < 200 else "MISSED"
        lines.append(f"{state}: a reader that never reads, {max(clog.resident_mib):.0f} MiB (200)")
    return lines


def main() -> int:
    """Measure, print a table and the goals; the exit code does not depend on them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--runs", type=int, default=9, help="of each load, default 9")
    parser.add_argument("--seconds", type=float, default=1.0, help="of each run, default 1")
    parser.add_argument("--only", nargs="+", choices=KINDS, default=KINDS, help="default: all")
    parser.add_argument("--sizes", action="store_true", help="more sizes of records and frames")
    parser.add_argument("--loads", nargs="+", metavar="NAME", help="only these, by their names")
    parser.add_argument("--contenders", nargs="+", metavar="NAME", help="only these of them")
    options = parser.parse_args()
    loads = [
        Load(load.kind, load.record_bytes, load.batch, options.seconds)
        for load in (*LOADS, *(SIZES if options.sizes else ()))
        if options.loads is None or load.name in options.loads
    ]
    if options.loads is not None and len(loads) != len({*options.loads}):
        known = ", ".join(repr(load.name) for load in (*LOADS, *SIZES))
        parser.error(f"--loads: {known} (the last {len(SIZES)} with --sizes)")
    with ExitStack() as stack:
        chosen = contenders(options.only, stack)
        if options.contenders is not None:
            names = ", ".join(repr(each.name) for each in chosen)
            chosen = [each for each in chosen if each.name in options.contenders]
            if len(chosen) != len({*options.contenders}):
                parser.error(f"--contenders: {names}")
        results = measure(
            chosen,
            loads,
            runs=options.runs,
            progress=lambda line: print(line, file=sys.stderr, flush=True),
        )
    if options.json:
        sys.stdout.buffer.write(orjson.dumps(results, option=orjson.OPT_INDENT_2) + b"\n")
        return 0
    for cells in rows(results, (RAW_SYNC, RAW_ASYNCIO, RAW_GRPC, RAW_KAFKA)):
        print(f"{cells[0]:16} {cells[1]:18} {cells[2]:36} {cells[3]}")
    print(*verdicts(results), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
