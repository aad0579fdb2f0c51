"""The whole configuration. One object, built once, passed down."""

from pydantic import Field

from dsp.config.balance import BalanceConfig
from dsp.config.scaling import ScalingConfig
from dsp.config.section import Section
from dsp.config.stream import StreamConfig
from dsp.config.transport import TransportConfig

__all__ = ["Config", "NodeConfig"]


class NodeConfig(Section):
    """The ``[node]`` table: who this endpoint is."""

    id: str | None = Field(
        default=None,
        min_length=1,
        max_length=128,
        # What every transport can carry: Kafka's topic names allow no more than this.
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$",
        description=(
            "Name of this endpoint, unique among its peers and kept across restarts. At most "
            "128 letters, digits, '.', '_' and '-'. Left out, a name is derived at start, and "
            "peers take a restarted endpoint for a new one."
        ),
    )


class Config(Section):
    """Everything that can be set."""

    node: NodeConfig = Field(default=NodeConfig(), description="Who this endpoint is.")
    transport: TransportConfig = Field(
        default=TransportConfig(),
        description="How this endpoint talks to its peers. Bounds are per process, not per host.",
    )
    stream: StreamConfig = Field(
        default=StreamConfig(), description="How the engine runs a pipeline."
    )
    scaling: ScalingConfig = Field(
        default=ScalingConfig(),
        description="By which rule and within what bounds operators change their instances.",
    )
    balance: BalanceConfig = Field(
        default=BalanceConfig(),
        description="Which instance gets a record, and how precisely costs are known.",
    )
