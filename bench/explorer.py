"""How fast the explorer is and how much memory it takes.

::

    python bench/explorer.py                 a table
    python bench/explorer.py --json          the same for machines
    python bench/explorer.py --states 200000 smaller

The model is mutual exclusion of four nodes by Ricart and Agrawala with a global invariant. Each row
is measured in an interpreter of its own. Memory is the sum of the peaks of all processes, which
counts pages that they share more than once.
"""

import argparse
import json
import multiprocessing
import os
import subprocess
import sys
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from dsp.core.machine import Received, Send
from dsp.core.types import NodeId
from dsp.testing.explorer import Model, Progress, Script, View, explore, tell


class Lock:
    """A node of Ricart and Agrawala's algorithm."""

    def __init__(self, me: NodeId, peers: Sequence[NodeId]) -> None:
        self.me = me
        self.peers = tuple(peers)
        self.clock = self.ts = 0
        self.status = "idle"
        self.waiting: frozenset[NodeId] = frozenset()
        self.owed: frozenset[NodeId] = frozenset()

    def handle(self, event: str | Received, now: float) -> Sequence[Send]:
        """Take "enter", "exit", or a message: a timestamp asks, None agrees."""
        if event == "enter":
            self.clock += 1
            self.ts, self.status, self.waiting = self.clock, "asking", frozenset(self.peers)
            return [Send(peer, self.ts) for peer in self.peers]
        if event == "exit":
            owed, self.status, self.owed = sorted(self.owed), "idle", frozenset()
            return [Send(peer, None) for peer in owed]
        assert isinstance(event, Received)
        if event.message is None:
            self.waiting -= {event.sender}
            self.status = "asking" if self.waiting else "inside"
            return []
        assert isinstance(event.message, int)
        self.clock = max(self.clock, event.message)
        first = (self.ts, self.me) < (event.message, event.sender)
        if self.status == "inside" or (self.status == "asking" and first):
            self.owed |= {event.sender}
            return []
        return [Send(event.sender, None)]

    def next_deadline(self) -> float | None:
        """There are no time-outs."""
        return None

    def check_invariants(self) -> None:
        """An idle node owes nothing."""
        assert self.status != "idle" or not self.owed

    def state(self) -> Hashable:
        """Everything that changes."""
        return (self.clock, self.ts, self.status, self.waiting, self.owed)

    def restore(self, state: Hashable) -> None:
        """Return to a state."""
        self.clock, self.ts, self.status, self.waiting, self.owed = state  # type: ignore[misc]

    def describe(self) -> Mapping[str, object]:
        """For humans."""
        return {"status": self.status}


def inside(node: NodeId) -> Callable[[View[Lock]], bool]:
    """A guard: the node is inside."""
    return lambda view: view.machine(node).status == "inside"


class Locks(Model[Lock]):
    """Four nodes that enter and leave so many times each."""

    def __init__(self, entries: int) -> None:
        self.entries = entries
        self.names = [NodeId(name) for name in "abcd"]

    def machines(self) -> Mapping[NodeId, Lock]:
        """Each knows all others."""
        return {n: Lock(n, [other for other in self.names if other != n]) for n in self.names}

    def scripts(self) -> Sequence[Script]:
        """Enter, exit, and again."""
        return [
            Script(n, (tell(n, "enter"), tell(n, "exit", when=inside(n))) * self.entries)
            for n in self.names
        ]

    def invariant(self, view: View[Lock]) -> None:
        """At most one is inside."""
        assert sum(view.machine(n).status == "inside" for n in self.names) <= 1


@dataclass(frozen=True, slots=True)
class Row:
    """One measurement."""

    entries: int
    workers: int
    states: int
    transitions: int
    seconds: float
    per_second: float
    per_second_per_core: float
    peak_mib: float
    bytes_per_state: float
    holds: bool
    complete: bool


def peak_bytes() -> int:
    """Peak resident memory of this process and its children, shared pages counted again."""
    total = 0
    for pid in (os.getpid(), *(child.pid for child in multiprocessing.active_children())):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                total += int(line.split()[1]) * 1024
    return total


def measure(entries: int, workers: int, states: int) -> Row:
    """Explore up to so many states, in this process and its workers."""
    before = peak_bytes()
    peak = before

    def watch(progress: Progress) -> None:
        nonlocal peak
        peak = max(peak, peak_bytes())

    result = explore(Locks(entries), workers=workers, max_states=states, progress=watch)
    peak = max(peak, peak_bytes())
    rate = result.transitions / result.seconds
    return Row(
        entries,
        workers,
        result.states,
        result.transitions,
        round(result.seconds, 2),
        round(rate),
        round(rate / workers),
        round(peak / 2**20, 1),
        round((peak - before) / result.states, 1),
        result.holds,
        result.complete,
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--states", type=int, default=2_000_000, help="states to stop at")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--one", nargs=2, type=int, metavar=("ENTRIES", "WORKERS"))
    options = parser.parse_args()
    if options.one:
        entries, workers = options.one
        print(json.dumps(asdict(measure(entries, workers, options.states))))
        return
    rows = []
    for entries, workers in ((1, 1), (1, 2), (2, 1), (2, 2)):
        command = [sys.executable, __file__, "--states", str(options.states)]
        command += ["--one", str(entries), str(workers)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        rows.append(Row(**json.loads(done.stdout)))
    if options.json:
        print(json.dumps([asdict(row) for row in rows], indent=2))
        return
    print("entries  workers      states  transitions  seconds  per second  per core  peak MiB")
    for row in rows:
        print(
            f"{row.entries:7}  {row.workers:7}  {row.states:10,}  {row.transitions:11,}"
            f"  {row.seconds:7.1f}  {row.per_second:10,.0f}  {row.per_second_per_core:8,.0f}"
            f"  {row.peak_mib:8,.0f}"
        )


if __name__ == "__main__":
    main()
