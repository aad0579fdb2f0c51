"""Both runs of a job, one after the other, and what they come to."""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dsp.errors import ConfigError
from dsp.lab.kafka_groups.flow import Figures, Flow, figures_of
from dsp.lab.kafka_groups.groups import line_of, run_groups
from dsp.lab.kafka_groups.mesh import run_mesh
from dsp.lab.kafka_groups.stage import GroupSettings
from dsp.stream.graph import Graph, Kind
from dsp.stream.processes import load_pipeline

if TYPE_CHECKING:
    from dsp.config import Config

__all__ = ["Study", "choose_operator", "default_config", "run_study"]


@dataclass(frozen=True, slots=True)
class Study:
    """What the two runs came to.

    Attributes:
        app: the job.
        operator: the one that is looked at.
        settings: of topics and groups.
        figures: of each run, by its name.
    """

    app: str
    operator: str
    settings: GroupSettings
    figures: dict[str, Figures]


def default_config(app: str) -> Path | None:
    """Give ``dsp.toml`` beside the module of an application, if there is one."""
    module = importlib.import_module(app.partition(":")[0])
    path = Path(module.__file__ or "").parent / "dsp.toml"
    return path if path.is_file() else None


def choose_operator(graph: Graph, name: str | None) -> str:
    """Give the operator to look at: the one that is asked for, else the elastic one.

    Raises:
        ConfigError: there is none such, or several.
    """
    elastic = [
        each.name
        for each in line_of(graph)
        if each.elastic and each.maximum != 1 and each.kind not in (Kind.SOURCE, Kind.SINK)
    ]
    if name is not None:
        if name not in elastic:
            raise ConfigError(
                f"{name!r} is no elastic operator of {graph.name!r}; there are {', '.join(elastic)}"
            )
        return name
    if len(elastic) != 1:
        raise ConfigError(
            f"pipeline {graph.name!r} has {len(elastic)} elastic operators: name one of them"
        )
    return elastic[0]


async def run_study(
    app: str,
    config: "Config",
    bootstrap: str,
    *,
    operator: str | None = None,
    settings: GroupSettings | None = None,
    progress: Callable[[str, int], None] = lambda name, records: None,
) -> tuple[Study, list[Flow]]:
    """Run the job on dsp, then with as many replicas at the same moments in consumer groups.

    Args:
        app: ``package.module:name`` of the pipeline.
        config: settings of the run on dsp, with a transport URL.
        bootstrap: brokers for the groups.
        operator: the one to look at.
        settings: of topics and groups.
        progress: told which run has brought how many records to the sink.

    Raises:
        ConfigError: the pipeline does not suit this.
        DspError: one of the runs failed.
    """
    chosen = choose_operator(load_pipeline(app).graph(), operator)
    groups = settings or GroupSettings()
    mesh = await run_mesh(app, config, chosen, lambda records: progress("dsp", records))
    kafka, wanted = await run_groups(
        load_pipeline(app).graph(),
        chosen,
        mesh.instances,
        bootstrap,
        groups,
        lambda records: progress("Kafka groups", records),
    )
    flows = [kafka, mesh]
    figures = {flow.name: figures_of(flow, chosen, wanted) for flow in flows}
    return Study(app, chosen, groups, figures), flows
