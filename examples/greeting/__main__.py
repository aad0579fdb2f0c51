"""Run some nodes in one process: ``python -m examples.greeting --transport grpc://127.0.0.1:0``.

``--transport`` goes before the variable DSP_TRANSPORT__URL, that before the file of ``--config``.
Each node opens the URL as its own endpoint, so a port in it must be 0: each node then gets a port
of its own. The exit code is 0 only if every greeting was answered.
"""

import argparse
import asyncio
import sys
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager, suppress
from importlib.util import find_spec
from urllib.parse import urlsplit

from dsp import DspError, NodeId, TransportConfig, load_config
from dsp.transport.session import create_session
from examples.greeting.node import GreetingNode

DEFAULT_URL = "zmq+tcp://127.0.0.1:0"
Report = Callable[[int], None]


def endpoint(config: TransportConfig, name: str) -> TransportConfig:
    """Give the configuration of one node: in a simulated network, the URL names the endpoint."""
    parts = urlsplit(config.url)
    url = f"sim://{parts.netloc}/{name}" if parts.scheme == "sim" else config.url
    return config.model_copy(update={"url": url})


async def greet(
    config: TransportConfig, names: list[str], patience: float, report: Report
) -> dict[str, GreetingNode]:
    """Let nodes greet each other until all have answered or patience ends."""
    nodes: dict[str, GreetingNode] = {}
    complete = asyncio.Event()

    def on_answer() -> None:
        answered = sum(len(node.answered) for node in nodes.values())
        report(answered)
        if answered == len(names) * (len(names) - 1):
            complete.set()

    async with AsyncExitStack() as stack, asyncio.TaskGroup() as tasks:
        contacts = []
        for name in names:
            transport = create_session(endpoint(config, name), NodeId(name))
            await stack.enter_async_context(transport)
            nodes[name] = GreetingNode(transport, on_answer)
            contacts.append(transport.contact)
        running = [
            tasks.create_task(node.run([peer for peer in contacts if peer.id != name]))
            for name, node in nodes.items()
        ]
        with suppress(TimeoutError):  # the result says who did not answer
            async with asyncio.timeout(patience):
                await complete.wait()
        for task in running:
            task.cancel()
    return nodes


@contextmanager
def progress(expected: int) -> Iterator[Report]:
    """Show how many answers have come: a bar on a terminal with rich, else a line per tenth."""
    if find_spec("rich") and sys.stdout.isatty():
        from rich.progress import Progress

        with Progress() as bar:
            task = bar.add_task("answers", total=expected)
            yield lambda answered: bar.update(task, completed=answered)
    else:
        shown = range(0, expected + 1, max(1, expected // 10))
        yield lambda answered: print(f"  {answered} answers") if answered in shown else None


def run(config: TransportConfig, count: int, patience: float) -> int:
    """Run the nodes, print the result, give the exit code."""
    names = [f"node-{number}" for number in range(1, count + 1)]
    expected = count * (count - 1)
    print(f"{count} nodes greet each other over {config.url}")
    with progress(expected) as report:
        nodes = asyncio.run(greet(config, names, patience, report))
    for name, node in nodes.items():
        if silent := [other for other in names if other not in {name, *node.answered}]:
            print(f"{name} has no answer of {', '.join(silent)}")
    counts = [(node.sent, len(node.answered), node.repeated) for node in nodes.values()]
    sent, answered, repeated = map(sum, zip(*counts, strict=True))
    print("ok:" if answered == expected else "FAILED:", f"{sent} greetings sent,", end=" ")
    print(f"{answered} answered, {expected} expected ({repeated} repeated)")
    return 0 if answered == expected else 1


def leaves(error: BaseException) -> list[BaseException]:
    """Take the errors out of the groups that nested task groups put them into."""
    inner = error.exceptions if isinstance(error, BaseExceptionGroup) else ()
    return [leaf for one in inner for leaf in leaves(one)] or [error]


def main(arguments: list[str] | None = None) -> int:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(prog="examples.greeting", description="Nodes that greet.")
    parser.add_argument("--transport", metavar="URL", help=f"default {DEFAULT_URL}")
    parser.add_argument("--nodes", type=int, default=5, metavar="N", help="2 or more, default 5")
    parser.add_argument("--config", metavar="FILE", help="a TOML file with a [transport] table")
    parser.add_argument("--patience", type=float, default=30, metavar="SECONDS", help="default 30")
    options = parser.parse_args(arguments)
    if options.nodes < 2:
        parser.error("--nodes: one alone has nobody to greet")
    overrides = {"transport": {"url": options.transport}} if options.transport else None
    try:
        config = load_config(options.config, overrides=overrides).transport
        if "url" not in config.model_fields_set:
            config = config.model_copy(update={"url": DEFAULT_URL})
        return run(config, options.nodes, options.patience)
    except* DspError as errors:
        print(*leaves(errors), sep="\n", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
