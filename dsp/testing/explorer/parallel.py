"""One exploration divided over several processes.

Each process owns the states whose fingerprint is its number modulo the number of processes. All
expand their share of a level, exchange what they found for each other, and then say what they saw;
so levels stay in step and the first fault found is still at the end of a shortest trace.
"""

import multiprocessing
import pickle
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Self, cast

from dsp.errors import DspError
from dsp.testing.explorer.exchange import Batch, Receiver, Sender
from dsp.testing.explorer.model import AnyModel
from dsp.testing.explorer.search import Level, Shard, patient_collector
from dsp.testing.explorer.table import Frontier

__all__ = ["Team", "WorkerError"]


class WorkerError(DspError):
    """A worker process failed; the text has its traceback."""


@dataclass(frozen=True, slots=True)
class _Failure:
    """Why a worker ended; ``follows`` if that is only because another one did."""

    text: str
    follows: bool


class _Worker:
    """What runs in each process."""

    def __init__(
        self, model: AnyModel, me: int, workers: int, peers: dict[int, Connection], *, links: bool
    ) -> None:
        self._shard = Shard(model, me=me, workers=workers, links=links)
        space = self._shard.engine.space
        self._me = me
        self._peers = peers
        self._senders = {peer: Sender(space) for peer in peers}
        self._receivers = {peer: Receiver(space) for peer in peers}

    def serve(self, boss: Connection) -> None:
        """Do what is asked until the other end is closed."""
        while True:
            try:
                order, argument = boss.recv()
            except EOFError:
                return
            if order == "start":
                boss.send(self._shard.start())
            elif order == "expand":
                boss.send(self._expand(argument))
            else:
                boss.send(self._shard.parent(argument))

    def _expand(self, depth: int) -> Level:
        level = self._shard.expand(depth)
        for peer in self._peers:
            batch = self._swap(peer)
            self._read(batch, self._receivers[peer], depth + 1, level)
        return level

    def _swap(self, peer: int) -> Batch:
        """Exchange batches with a peer. The lower number speaks first, so no two ever wait."""
        connection = self._peers[peer]
        mine = self._senders[peer].pack(self._shard.outboxes[peer])
        data = pickle.dumps(mine, protocol=pickle.HIGHEST_PROTOCOL)
        if self._me < peer:
            connection.send_bytes(data)
            received = connection.recv_bytes()
        else:
            received = connection.recv_bytes()
            connection.send_bytes(data)
        return cast("Batch", pickle.loads(received))

    def _read(self, batch: Batch, receiver: Receiver, length: int, level: Level) -> None:
        receiver.learn(batch)
        states = Frontier(batch.chunks)

        def states_at(positions: Sequence[int]) -> Iterator[tuple[int, ...]]:
            return map(receiver.translate, states.at(positions))

        self._shard.receive(batch.fingerprints, batch.links, states_at, length, level)


def _run(
    model: AnyModel,
    me: int,
    pipes: dict[tuple[int, int], tuple[Connection, Connection]],
    bosses: list[tuple[Connection, Connection]],
    links: bool,
) -> None:
    # A fork inherits every pipe. Ends that belong to others are closed, so that the end of one
    # process is seen by those who wait for it.
    for number, (ours, theirs) in enumerate(bosses):
        ours.close()
        if number != me:
            theirs.close()
    peers: dict[int, Connection] = {}
    for (low, high), (left, right) in pipes.items():
        for number, other, end in ((low, high, left), (high, low, right)):
            if number == me:
                peers[other] = end
            else:
                end.close()
    boss = bosses[me][1]
    try:
        with patient_collector():
            _Worker(model, me, len(bosses), dict(sorted(peers.items())), links=links).serve(boss)
    except Exception as exc:  # reported to the process that waits for us, which raises it
        boss.send(_Failure(traceback.format_exc(), isinstance(exc, EOFError | OSError)))


class Team:
    """Processes that explore one model together. A context manager.

    Args:
        model: what to explore.
        workers: number of processes.
        links: keep parent links.
    """

    def __init__(self, model: AnyModel, workers: int, *, links: bool) -> None:
        # Models hold functions, which cannot be pickled; a fork needs no pickling.
        context = multiprocessing.get_context("fork")
        pairs = [(low, high) for low in range(workers) for high in range(low + 1, workers)]
        pipes = {pair: context.Pipe() for pair in pairs}
        bosses = [context.Pipe() for _ in range(workers)]
        self._connections = [ours for ours, _ in bosses]
        self._processes = [
            context.Process(target=_run, args=(model, me, pipes, bosses, links), daemon=True)
            for me in range(workers)
        ]
        for process in self._processes:
            process.start()
        for left, right in pipes.values():
            left.close()
            right.close()
        for _, theirs in bosses:
            theirs.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exc: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        for connection in self._connections:
            connection.close()
        for process in self._processes:
            if exc is not None:
                process.terminate()
            process.join()
            process.close()

    def _answers(self, order: str, argument: int) -> list[Level]:
        for connection in self._connections:
            connection.send((order, argument))
        answers = [self._receive(connection) for connection in self._connections]
        return [cast("Level", answer) for answer in _sound(answers)]

    def _receive(self, connection: Connection) -> object:
        try:
            answer: object = connection.recv()
        except EOFError:
            return _Failure("it ended without an answer", follows=False)
        return answer

    def _sum(self, levels: list[Level]) -> Level:
        total = Level()
        for level in levels:
            total.transitions += level.transitions
            total.quiet += level.quiet
            total.cut += level.cut
            total.new += level.new
            if level.finding is not None:
                total.note(level.finding)
        return total

    def start(self) -> Level:
        """Take in the state at the start."""
        return self._sum(self._answers("start", 0))

    def expand(self, depth: int) -> Level:
        """Expand one level."""
        return self._sum(self._answers("expand", depth))

    def parent(self, link: int) -> tuple[int, int]:
        """Fingerprint of a state, and the link to its parent."""
        connection = self._connections[link % len(self._connections)]
        connection.send(("parent", link))
        return cast("tuple[int, int]", _sound([self._receive(connection)])[0])


def _sound(answers: list[object]) -> list[object]:
    """The answers, if none is a failure.

    Raises:
        WorkerError: with the failure that came first, not with those that follow from it.
    """
    failures = [answer for answer in answers if isinstance(answer, _Failure)]
    if failures:
        first = min(failures, key=lambda failure: failure.follows)
        raise WorkerError(f"a worker process failed:\n{first.text}")
    return answers
