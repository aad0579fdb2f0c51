"""The contract of a transport, as tests that every transport passes.

Write a class whose name starts with ``Test``, derive it from ``TransportContract``, and say how to
make an endpoint::

    class TestMyTransport(TransportContract):
        def config(self, node, **settings): ...
        async def send_garbage(self, endpoint): ...

The checks follow ``Guarantees``: what a transport does not declare is not asked of it.
"""

from dsp.testing.contract.cancelling import CancellingContract
from dsp.testing.contract.closing import ClosingContract
from dsp.testing.contract.exchange import ExchangeContract
from dsp.testing.contract.harness import ContractHarness
from dsp.testing.contract.pressure import PressureContract
from dsp.testing.contract.strangers import StrangersContract

__all__ = ["TransportContract", "ContractHarness"]


class TransportContract(
    ExchangeContract,
    PressureContract,
    CancellingContract,
    ClosingContract,
    StrangersContract,
):
    """Everything that is asked of a transport within one process."""
