"""What ``dsp run`` shows while a pipeline runs: a table on a terminal, lines everywhere else."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from dsp.stream.graph import Kind
from dsp.stream.history import History
from dsp.stream.summary import OperatorSummary, Summary

__all__ = ["View", "LineView", "TableView", "view_on"]

EVENTS_SHOWN = 6
SECONDS_BETWEEN_LINES = 1.0


class View:
    """Shows how a run goes. This one shows nothing."""

    def show(self, summary: Summary, history: History) -> None:
        """Take in what is known now."""

    def say(self, text: str) -> None:
        """Say something that happened."""

    def note(self, text: str) -> None:
        """Have this shown beside the figures, instead of what was noted before."""


class LineView(View):
    """A line per second, and one per scaling action.

    Args:
        stream: where to.
    """

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream
        self._shown_at = 0.0
        self._actions = 0
        self._note = ""

    def show(self, summary: Summary, history: History) -> None:
        """Print what is new."""
        for action in history.actions[self._actions :]:
            self.say(_event(action))
        self._actions = len(history.actions)
        if history.last - self._shown_at >= SECONDS_BETWEEN_LINES:
            self._shown_at = history.last
            operators = " | ".join(map(_line, summary.operators.values()))
            noted = f"{self._note} | " if self._note else ""
            self.say(f"{history.last:6.1f} s  {noted}{operators}")

    def note(self, text: str) -> None:
        """Put this into the lines that follow."""
        self._note = text

    def say(self, text: str) -> None:
        """Print a line."""
        print(text, file=self._stream, flush=True)


class TableView(View):
    """A table that is painted again and again, with the last scaling actions under it.

    Args:
        live: what paints.
    """

    def __init__(self, live: Live) -> None:
        self._live = live
        self._said: list[str] = []
        self._note = ""

    def show(self, summary: Summary, history: History) -> None:
        """Paint the table anew."""
        table = Table(box=None, pad_edge=False, header_style="bold")
        for title in ("operator", "instances", "records/s", "load", "queue", "created", "left"):
            table.add_column(title, justify="left" if title == "operator" else "right")
        for each in summary.operators.values():
            table.add_row(
                each.name,
                str(each.instances),
                f"{each.rate:.0f}",
                _load(each),
                str(each.queue),
                str(each.created),
                str(each.left),
            )
        head = (
            f"{history.last:.1f} s  in {summary.records_in}  out {summary.records_out}  "
            f"dead letters {summary.dead_letters}  duplicates {summary.repeats}"
            + (f"  {self._note}" if self._note else "")
        )
        events = [_event(action) for action in history.actions[-EVENTS_SHOWN:]]
        below = "\n".join([*events, *self._said])
        self._live.update(Group(Text(head, "bold"), table, Text(below, "dim")))

    def note(self, text: str) -> None:
        """Show this above the table."""
        self._note = text

    def say(self, text: str) -> None:
        """Show a line under the table."""
        self._said.append(text)


@contextmanager
def view_on(*, quiet: bool) -> Iterator[View]:
    """Give the view that fits standard output.

    Args:
        quiet: standard output is for programs: show only on a terminal that reads the errors.
    """
    stream = sys.stderr if quiet else sys.stdout
    if not stream.isatty():
        yield View() if quiet else LineView(stream)
        return
    with Live(console=Console(file=stream), refresh_per_second=4) as live:
        yield TableView(live)


def _line(each: OperatorSummary) -> str:
    text = f"{each.name} {each.instances} x {each.rate / max(1, each.instances):.0f}/s"
    if each.kind in (Kind.SOURCE, Kind.SINK):
        return text
    return f"{text} load {_load(each)} queue {each.queue}"


def _load(each: OperatorSummary) -> str:
    return "-" if each.kind in (Kind.SOURCE, Kind.SINK) else f"{each.load:.2f}"


def _event(action: tuple[float, str, str, int]) -> str:
    time, name, what, count = action
    return f"{time:6.1f} s  {name} {what}" + (f" {count}" if what == "duplicated" else "")
