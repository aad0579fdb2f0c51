"""Run the exchange in one process: ``python -m examples.exchange --transport zmq+tcp://127.0.0.1:0``.

The network is a URL and nothing else. ``--transport`` goes before the variable DSP_TRANSPORT__URL,
that before the file of ``--config``. The totals go to standard output, sorted, and are the same
bytes over every transport; what is going on is told on standard error. The exit code is 0 only if
every node has the right totals of all.

Each node opens the URL as its own endpoint, so a port in it must be 0.
"""

import argparse
import asyncio
import sys
import uuid
from collections import Counter
from contextlib import AsyncExitStack, suppress
from urllib.parse import urlsplit

from dsp import DspError, NodeId, TransportConfig, create_session, load_config
from examples.exchange.counting import Totals
from examples.exchange.node import ExchangeNode, words_of

DEFAULT_URL = "sim://world"


def say(text: str) -> None:
    """Tell people what is going on; standard output is for the totals."""
    print(text, file=sys.stderr, flush=True)


def endpoint(config: TransportConfig, name: str) -> TransportConfig:
    """Give the configuration of one node: where a URL names the endpoint, it has the name in it."""
    marks = {"sim": "/", "zmq+ipc": "."}
    mark = marks.get(urlsplit(config.url).scheme)
    url = config.url if mark is None else f"{config.url}{mark}{name}"
    return config.model_copy(update={"url": url})


def right_totals(names: list[str], batches: int) -> Totals:
    """Count without a network what the nodes are to count."""
    tally = Counter(
        (receiver, sender, word)
        for sender in names
        for receiver in names
        if sender != receiver
        for number in range(batches)
        for word in words_of(sender, receiver, number)
    )
    return tuple(sorted((*key, count) for key, count in tally.items()))


class Progress:
    """Tells of every tenth of what is expected."""

    def __init__(self, expected: int) -> None:
        self.counted = 0
        self._expected = expected
        self._step = max(1, expected // 10)

    def __call__(self) -> None:
        self.counted += 1
        if self.counted % self._step == 0 or self.counted == self._expected:
            say(f"  {self.counted} of {self._expected} batches counted")


async def exchange(
    config: TransportConfig, names: list[str], batches: int, patience: float, progress: Progress
) -> list[ExchangeNode]:
    """Let nodes exchange batches until all have the totals or patience ends."""
    # Frames of an earlier run that was broken off may still be in a durable log.
    run = uuid.uuid4().hex
    nodes: list[ExchangeNode] = []
    sessions = [create_session(endpoint(config, name), NodeId(name)) for name in names]
    async with AsyncExitStack() as stack:
        for session in sessions:
            await stack.enter_async_context(session)
        for session in sessions:
            peers = [other.contact for other in sessions if other is not session]
            nodes.append(ExchangeNode(session, peers, run, progress))
        with suppress(TimeoutError):  # the result says what is missing
            async with asyncio.timeout(patience), asyncio.TaskGroup() as tasks:
                for node in nodes:
                    tasks.create_task(node.run(batches))
    if all(node.totals is not None for node in nodes):
        # Nobody comes back under these ids: a log need not keep anything for them.
        for session in sessions:
            await session.retire()
    return nodes


def missing(node: ExchangeNode) -> str:
    """Say why a node has no totals."""
    peers = (f"{peer}: {state}" for peer, state in node.machine.describe().items())
    return f"{node.name} has no totals ({node.problem or '; '.join(peers)})"


def run(config: TransportConfig, count: int, batches: int, patience: float) -> int:
    """Run the nodes, print the totals, give the exit code."""
    names = [f"node-{number}" for number in range(1, count + 1)]
    progress = Progress(count * (count - 1) * batches)
    say(f"{count} nodes exchange {batches} batches with each other over {config.url}")
    nodes = asyncio.run(exchange(config, names, batches, patience, progress))
    faults = [missing(node) for node in nodes if node.totals is None]
    if not faults:
        right = right_totals(names, batches)
        faults = [f"{node.name} has wrong totals" for node in nodes if node.totals != right]
    if faults:
        say("\n".join(["FAILED:", *faults]))
        return 1
    for receiver, sender, word, times in right:
        print(f"{receiver} counted {times} {word} of {sender}")
    rejected = sum(node.rejected for node in nodes)
    say(f"ok: {count} nodes agree on {progress.counted} batches ({rejected} frames rejected)")
    return 0


def leaves(error: BaseException) -> list[BaseException]:
    """Take the errors out of the groups that nested task groups put them into."""
    inner = error.exceptions if isinstance(error, BaseExceptionGroup) else ()
    return [leaf for one in inner for leaf in leaves(one)] or [error]


def main(arguments: list[str] | None = None) -> int:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(
        prog="examples.exchange", description="Nodes that exchange words and count them."
    )
    parser.add_argument("--transport", metavar="URL", help=f"default {DEFAULT_URL}")
    parser.add_argument("--nodes", type=int, default=3, metavar="N", help="2 or more, default 3")
    parser.add_argument("--batches", type=int, default=50, metavar="N", help="per pair, default 50")
    parser.add_argument("--config", metavar="FILE", help="a TOML file with a [transport] table")
    parser.add_argument("--patience", type=float, default=30, metavar="SECONDS", help="default 30")
    options = parser.parse_args(arguments)
    if options.nodes < 2:
        parser.error("--nodes: one alone has nobody to exchange with")
    if options.batches < 1:
        parser.error("--batches: nothing to exchange")
    overrides = {"transport": {"url": options.transport}} if options.transport else None
    try:
        config = load_config(options.config, overrides=overrides).transport
        if "url" not in config.model_fields_set:
            config = config.model_copy(update={"url": DEFAULT_URL})
        return run(config, options.nodes, options.batches, options.patience)
    except* DspError as errors:
        say("\n".join(map(str, leaves(errors))))
    return 1


if __name__ == "__main__":
    sys.exit(main())
