"""A node that greets its peers, and answers those who greet it.

It knows peers and bytes, and no network: the same code runs over every transport and in a test.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress

from dsp import Frame, Lane, NodeId, Peer, Transport
from dsp.core.envelope import Custom, Envelope, decode_envelope, encode_envelope
from dsp.errors import CodecError, WouldBlock

__all__ = ["GreetingNode"]

GREETING = "examples.greeting"
ANSWER = "examples.answer"


class GreetingNode:
    """Greets every peer until it answers.

    Args:
        transport: a started transport.
        on_answer: called after the first answer of each peer.
        retry_after: seconds without an answer after which a greeting is sent again.
    """

    def __init__(
        self, transport: Transport, on_answer: Callable[[], None], retry_after: float = 1.0
    ) -> None:
        self.sent = self.repeated = self.rejected = 0
        self.answered: set[NodeId] = set()
        self._transport = transport
        self._retry_after = retry_after
        self._on_answer = on_answer
        self._answers: dict[NodeId, asyncio.Event] = {}

    async def run(self, peers: Sequence[Peer]) -> None:
        """Greet these peers and answer whoever greets us. Goes on until it is cancelled.

        It cannot end by itself: when all have answered us, others may still wait for our answer.
        """
        async with asyncio.TaskGroup() as tasks:
            for peer in peers:
                self._answers[peer.id] = asyncio.Event()
                tasks.create_task(self._greet(peer, self._answers[peer.id]))
            await self._read()

    async def _greet(self, peer: Peer, answered: asyncio.Event) -> None:
        greeting = self._message(GREETING, peer)
        self.sent += 1
        while True:
            await self._transport.send(peer, greeting, lane=Lane.CONTROL)
            with suppress(TimeoutError):
                async with asyncio.timeout(self._retry_after):
                    await answered.wait()
                return
            self.repeated += 1

    async def _read(self) -> None:
        while True:
            inbound = await self._transport.receive(Lane.CONTROL)
            if isinstance(inbound, Frame):  # the rest tells of peers that are lost: we retry anyway
                self._take(inbound)
                self._transport.done(inbound)

    def _take(self, frame: Frame) -> None:
        try:
            message = decode_envelope(frame.payload).custom
        except CodecError:
            self.rejected += 1
            return
        sender = frame.sender
        if message.type == GREETING:
            # Two readers that wait for each other's full queues would wait for ever. An answer
            # that finds no room is left out, since the greeting comes again.
            with suppress(WouldBlock):
                answer = self._message(ANSWER, sender)
                self._transport.send_nowait(sender, answer, lane=Lane.CONTROL)
        elif message.type == ANSWER and sender.id in self._answers.keys() - self.answered:
            self.answered.add(sender.id)
            self._answers[sender.id].set()
            self._on_answer()

    def _message(self, kind: str, to: Peer) -> bytes:
        name = self._transport.contact.id
        custom = Custom(type=kind, payload=f"{name} to {to.id}".encode())
        return encode_envelope(Envelope(source=name, destination=to.id, custom=custom))
