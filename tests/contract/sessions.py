"""The contract on sessions over any adapter."""

from typing import Any

from dsp.core.types import NodeId
from dsp.testing.contract import ContractHarness
from dsp.transport.base import Transport
from dsp.transport.session import Session


class Sessions(ContractHarness):
    """Mixed in before a harness: the same with sessions over it."""

    factory: str = "dsp.transport.session:create_session"

    def make(self, node: str, **settings: Any) -> Transport:  # noqa: ANN401
        return Session.from_config(self.config(node, **settings), NodeId(node))
