"""Dead letters: what happens to records on which a body fails, or that a source cannot read."""

import logging
from collections.abc import Sequence

import orjson

from dsp.stream.batch import Batch
from dsp.stream.graph import DEAD_LETTERS, Edge
from dsp.stream.metrics import MetricCollector
from dsp.stream.outlet import Outlet
from dsp.stream.parcels import Made
from dsp.stream.plain_json import dump_json
from dsp.stream.steps import Failure
from dsp.stream.tokens import Token

__all__ = ["DeadLetters", "letter"]

logger = logging.getLogger(__name__)

# Failures that are logged with their traceback where no sink takes them; the rest is counted.
LOGGED_FAILURES = 20


class DeadLetters:
    """Sends failures to the sink for them; logs and counts them where there is none.

    Args:
        instance: name of the instance that they come from.
        operator: its operator.
        edges: from this operator, perhaps with one to that sink.
    """

    def __init__(
        self,
        instance: str,
        operator: str,
        edges: Sequence[Edge],
        outlet: Outlet,
        metrics: MetricCollector,
    ) -> None:
        self._instance = instance
        self._operator = operator
        self._edge = next((edge for edge in edges if edge.target == DEAD_LETTERS), None)
        self._outlet = outlet
        self._metrics = metrics
        self._logged = 0

    async def bury(self, failures: Sequence[Failure], born: float, token: Token) -> None:
        """Take failures of an input; the input is done when they are taken."""
        if not failures:
            return
        self._metrics.failed += len(failures)
        if self._edge is None:
            self._log(failures)
            return
        letters = [letter(self._operator, self._instance, failure) for failure in failures]
        batch = Batch(letters, [failure.id for failure in failures], born)
        await self._outlet.emit(Made(self._edge, batch), token)

    def _log(self, failures: Sequence[Failure]) -> None:
        for failure in failures[: max(0, LOGGED_FAILURES - self._logged)]:
            logger.error(
                "%s: record %x is a dead letter: %s\n%s",
                self._instance,
                failure.id,
                failure.error,
                failure.traceback or repr(failure.value),
            )
        self._logged += len(failures)


def letter(operator: str, instance: str, failure: Failure) -> dict[str, object]:
    """Give what the sink for dead letters gets of a failure."""
    return {
        "operator": operator,
        "instance": instance,
        "id": f"{failure.id:x}",
        "value": _shown(failure.value),
        "error": failure.error,
        "traceback": failure.traceback,
    }


def _shown(value: object) -> object:
    """Give a value as JSON can hold it, as text where it cannot."""
    try:
        shown: object = orjson.loads(dump_json(value, 0, repr))
    except (
        TypeError
    ):  # no numbers, integers over 64 bits, text with lone surrogates, keys that are no text
        return repr(value)
    return shown
