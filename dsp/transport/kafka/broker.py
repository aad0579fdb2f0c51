"""One connection to the brokers, beside the data: to ask, to create, and to notice that they go.

aiokafka's clients retry in silence, which is right for the data, and tell nobody why they cannot
connect. This connection is our own, so a wrong password is told from a wrong port, and health from
trouble.
"""

import asyncio
import logging
import ssl
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from aiokafka.protocol.metadata import MetadataRequest

from dsp.errors import ConnectError
from dsp.transport.kafka.errors import FAILURES, describe
from dsp.transport.kafka.letting_go import AbruptConnection

__all__ = ["Broker"]

logger = logging.getLogger(__name__)

PING = 2.0
FIRST_PAUSE = 0.05
LONGEST_PAUSE = 1.0


class Broker:
    """A connection to one of the brokers, made again when it is lost.

    Args:
        hosts: ``host:port`` of the brokers to try, in this order.
        options: what aiokafka takes about security.
        client: name of this client, for the brokers' logs.
        connect_timeout: seconds for all hosts together.
        request_timeout: seconds for an answer.
    """

    def __init__(
        self,
        hosts: Sequence[str],
        options: dict[str, Any],
        *,
        client: str,
        connect_timeout: float,
        request_timeout: float,
    ) -> None:
        self._hosts = hosts
        self._options = options
        self._client = client
        self._connect_timeout = connect_timeout
        self._request_timeout = request_timeout
        self._connection: AbruptConnection | None = None
        self._lost = asyncio.Event()
        self._closed = False

    async def connect(self) -> None:
        """Connect to the first host that answers. Cancelled, nothing is left open.

        Raises:
            KafkaError: or one of ``FAILURES``, the first that says more than "not there".
        """
        failures: list[BaseException] = []
        share = self._connect_timeout / len(self._hosts)
        for address in self._hosts:
            host, _, port = address.rpartition(":")
            try:
                connection = AbruptConnection(
                    host.strip("[]"),
                    int(port),
                    client_id=self._client,
                    request_timeout_ms=int(self._request_timeout * 1000),
                    on_close=self._on_close,
                    **self._options,
                )
                async with asyncio.timeout(share):
                    await connection.connect()
            except TimeoutError:
                failures.append(TimeoutError(f"no answer from {address} within {share:.1f} s"))
            except FAILURES as error:
                failures.append(error)
            else:
                if self._closed:
                    connection.close()
                    raise ConnectError("closed while connecting")
                self._lost.clear()
                self._connection = connection
                return
        # A broker that refuses us says more than one that is not there.
        telling = (f for f in failures if not isinstance(f, OSError) or isinstance(f, ssl.SSLError))
        raise next(telling, failures[0])

    async def ask(self, request: Any) -> Any:  # noqa: ANN401 - aiokafka is not typed
        """Send a request and give the answer.

        Raises:
            KafkaError: or another of ``FAILURES``.
        """
        connection = self._connection
        if connection is None:
            raise ConnectionError("no connection to a broker")
        try:
            return await connection.send(request)
        except TimeoutError:
            # Answers come in order: what follows would wait as long.
            connection.close()
            raise TimeoutError(f"no answer within {self._request_timeout} s") from None

    async def topics(self, names: Sequence[str]) -> dict[str, dict[str, Any]]:
        """Give what the brokers know about topics, and create none by asking."""
        answer = await self.ask(MetadataRequest([*names], allow_auto_topic_creation=False))
        return {topic["topic"]: topic for topic in answer.to_object()["topics"]}

    async def cluster(self) -> tuple[str | None, int | None]:
        """Give the id of the cluster, and the number of the broker that we talk to, if known."""
        connection = self._connection
        answer = (await self.ask(MetadataRequest([], allow_auto_topic_creation=False))).to_object()
        number = None
        if connection is not None:
            here = (connection.host, connection.port)
            for broker in answer["brokers"]:
                if (broker["host"], broker["port"]) == here:
                    number = broker["node_id"]
        return answer.get("cluster_id"), number

    async def watch(
        self, names: Sequence[str], report: Callable[[str | None], None], slow_after: float
    ) -> None:
        """Look again and again whether brokers and topics are there. Ends by cancellation.

        Args:
            names: topics that must be there.
            report: is told what is wrong; None if nothing is.
            slow_after: seconds without an answer that are worth a report.
        """
        pause = FIRST_PAUSE
        while True:
            try:
                if self._connection is None:
                    await self.connect()
                await self._look(names, report, slow_after)
                pause = FIRST_PAUSE
                # Lost, another broker may take its place before anybody needs to know.
                with suppress(TimeoutError):
                    async with asyncio.timeout(PING):
                        await self._lost.wait()
            except FAILURES as error:
                report(f"no broker of {','.join(self._hosts)} answers: {describe(error)}")
                await asyncio.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE)

    async def _look(
        self, names: Sequence[str], report: Callable[[str | None], None], slow_after: float
    ) -> None:
        asking = asyncio.ensure_future(self.topics(names))
        try:
            done, _ = await asyncio.wait([asking], timeout=slow_after)
            if not done:
                report(f"the broker has not answered for {slow_after:.1f} s")
            found = await asking
        finally:
            asking.cancel()
        gone = [name for name in names if not found.get(name, {}).get("partitions")]
        report(f"the inbox is gone from the brokers: {', '.join(gone)}" if gone else None)

    def _on_close(self, connection: AbruptConnection, reason: object) -> None:
        if connection is self._connection:
            self._connection = None
            self._lost.set()

    def close(self) -> None:
        """Let go of the connection. Safe to repeat."""
        self._closed = True
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
