"""Which class shares out the records of an edge."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, assert_never

from dsp.balance.settings import BalanceSettings, size_for
from dsp.errors import ConfigError, MissingExtraError
from dsp.stream.graph import Edge, Grouping
from dsp.stream.groupings.base import Distribution, Ways
from dsp.stream.groupings.partial_key import PartialKey
from dsp.stream.groupings.split import ByKey
from dsp.stream.groupings.whole import Broadcast, LeastWork, RoundRobin

if TYPE_CHECKING:
    from dsp.config.balance import BalanceConfig

__all__ = ["Groupings", "Shuffle", "checked", "goes_by_work", "is_measured", "make_distribution"]

Shuffle = Literal["adaptive", "round-robin"]

NEED_KEY = (Grouping.KEY, Grouping.PARTIAL_KEY, Grouping.OSG)


@dataclass(frozen=True, slots=True)
class Groupings:
    """What the configuration says about groupings.

    Attributes:
        shuffle: how edges are shared out whose pipeline does not say.
        balance: for groupings that learn what records cost.
    """

    shuffle: Shuffle = "adaptive"
    balance: BalanceSettings = field(default_factory=BalanceSettings)

    @classmethod
    def of(cls, config: "BalanceConfig") -> "Groupings":
        """Read the configuration."""
        rows, columns = size_for(config.epsilon, config.delta)
        settings = BalanceSettings(
            rows=rows,
            columns=columns,
            seed=config.seed,
            window=config.osg_window,
            tolerance=config.osg_tolerance,
            report_records=config.report_records,
            report_pause=config.report_pause,
            memory=config.memory,
        )
        return cls(config.shuffle, settings)


def checked(name: str, key: Callable[[Any], Any] | None) -> Grouping:
    """Find a grouping by its name, and see whether it can be had.

    Raises:
        ConfigError: there is none, or it has a key too many or too few.
        MissingExtraError: an extra is not installed.
    """
    known = [each.value for each in Grouping]
    if name not in known:
        raise ConfigError(f"no grouping {name!r}; there are {', '.join(known)}")
    grouping = Grouping(name)
    if key is None and grouping in NEED_KEY:
        raise ConfigError(
            f"grouping {name!r} goes by a key: grouped({name!r}, key=...) says what it is"
        )
    if key is not None and grouping not in (*NEED_KEY, Grouping.ADAPTIVE):
        raise ConfigError(f"grouping {name!r} has no use for a key: grouped({name!r}) will do")
    if key is not None and grouping in (Grouping.OSG, Grouping.ADAPTIVE):
        need_balance(grouping)
    return grouping


def is_measured(edge: Edge) -> bool:
    """Whether whoever chooses has to know what the records of an edge cost."""
    return edge.key is not None and edge.grouping in (Grouping.OSG, Grouping.ADAPTIVE)


def goes_by_work(edge: Edge, groupings: Groupings) -> bool:
    """Whether whoever chooses has to know what is executed of the records of an edge."""
    return is_measured(edge) or _meant(edge, groupings) is Grouping.ADAPTIVE


def _meant(edge: Edge, groupings: Groupings) -> Grouping:
    """Give the grouping of an edge; the configuration says it if the pipeline does not."""
    if edge.grouping is Grouping.SHUFFLE:
        return Grouping(groupings.shuffle)
    return edge.grouping


def need_balance(grouping: Grouping) -> None:
    """See whether what a grouping needs is installed.

    Raises:
        MissingExtraError: it is not.
    """
    try:
        import numpy  # noqa: F401
    except ModuleNotFoundError as error:
        raise MissingExtraError("balance", f"grouping {grouping.value!r} with a key") from error


def make_distribution(ways: Ways, groupings: Groupings | None = None) -> Distribution:
    """Make what shares out the records of an edge."""
    groupings = groupings or Groupings()
    grouping = _meant(ways.edge, groupings)
    match grouping:
        case Grouping.ROUND_ROBIN:
            return RoundRobin(ways)
        case Grouping.KEY:
            return ByKey(ways)
        case Grouping.PARTIAL_KEY:
            return PartialKey(ways)
        case Grouping.BROADCAST:
            return Broadcast(ways)
        case Grouping.ADAPTIVE if ways.edge.key is None:
            return LeastWork(ways)
        case Grouping.ADAPTIVE | Grouping.OSG:
            return _balanced(ways, grouping, groupings)
        case Grouping.SHUFFLE:
            raise AssertionError("the configuration says what it stands for")
        case other:
            assert_never(other)


def _balanced(ways: Ways, grouping: Grouping, groupings: Groupings) -> Distribution:
    need_balance(grouping)
    from dsp.balance.machine_adaptive import AdaptiveScheduler
    from dsp.balance.machine_osg import OsgScheduler
    from dsp.stream.groupings.balanced import Balanced

    settings = groupings.balance
    if grouping is Grouping.OSG:
        return Balanced(ways, OsgScheduler(settings), bounded=False)
    return Balanced(ways, AdaptiveScheduler(settings), bounded=True)
