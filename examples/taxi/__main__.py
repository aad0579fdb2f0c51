"""Run the taxi job and judge it: ``python -m examples.taxi --transport zmq://127.0.0.1:0``."""

import argparse
import sys
from pathlib import Path

from dsp.cli.live import view_on
from dsp.cli.run import print_summary
from dsp.cli.running import Outcome, run_pipeline
from dsp.config import load_config
from dsp.errors import DspError
from examples.taxi.app import CAPACITY, TripCount, expected, load
from examples.taxi.load import Load

__all__ = ["main", "judge"]

HERE = Path(__file__).parent
TARGET = 0.7
"""Share of their capacity that instances are meant to be busy with; as in ``dsp.toml``."""
SETTLED = (5, 12, 3)
"""Instances of ``in_zone`` once settled, step by step, as the thesis saw them."""


def judge(outcome: Outcome, wanted: Load) -> list[str]:
    """Say what is wrong with a run; tell, beside it, how instances followed the load."""
    faults = list(outcome.faults)
    right, count = expected(wanted.records), outcome.bodies["count"]
    assert isinstance(count, TripCount)
    if (count.trips, count.fares) != (right.trips, right.fares):
        faults.append(f"counted {count.trips} trips, a plain loop counts {right.trips}")
    if outcome.summary.records_in != wanted.records or outcome.summary.lost:
        summary = outcome.summary
        faults.append(f"{summary.records_in} of {wanted.records} read, {summary.lost} lost")
    began = 0.0
    for (seconds, rate), wanted_instances in zip(wanted.steps, SETTLED, strict=True):
        # Once settled: the second half of the step.
        found = outcome.history.settled("in_zone", began + seconds / 2, began + seconds)
        ideal = rate / CAPACITY / TARGET
        print(f"at {rate:.0f} records/s: {found:.0f} instances of in_zone, ideal {ideal:.1f}")
        # Instances decide by figures of a real machine, and a busy one misleads them. Records
        # must be right in any case.
        if abs(found - wanted_instances) > 1:
            print(f"  that is more than 1 away from {wanted_instances}: is the machine busy?")
        began += seconds
    return faults


def main(arguments: list[str] | None = None) -> int:
    """Read the command line, run, judge."""
    parser = argparse.ArgumentParser(prog="examples.taxi", description=__doc__)
    parser.add_argument("--transport", metavar="URL", help="default: everything in this process")
    parser.add_argument("--config", metavar="FILE", default=str(HERE / "dsp.toml"))
    parser.add_argument("--plot", metavar="FILE", type=Path, help="draw the run into this file")
    options = parser.parse_args(arguments)
    overrides = {"transport": {"url": options.transport}} if options.transport else None
    wanted = load()
    try:
        config = load_config(options.config, overrides=overrides)
        print(f"{wanted.records} taxi trips in {wanted.seconds:.0f} s", flush=True)
        with view_on(quiet=False) as view:
            outcome = run_pipeline("examples.taxi.app:pipeline", config, view)
        if options.plot is not None:
            from dsp.lab.following import draw

            draw(options.plot, outcome.history, "in_zone")
    except DspError as error:
        print(error, file=sys.stderr)
        return 1
    print_summary(outcome)
    if outcome.stopped:
        return outcome.code
    faults = judge(outcome, wanted)
    print("\n".join(["FAILED:", *faults]) if faults else "ok: every trip is counted once")
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
