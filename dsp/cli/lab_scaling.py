"""``dsp lab scaling``: the simulations of papers 000 (section 3.4) and 001 (section 5)."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import Progress
from rich.text import Text

from dsp.cli.output import print_json, print_rows

if TYPE_CHECKING:
    from dsp.lab.scaling.study import Study, Summary

__all__ = ["scaling"]

_TITLES = {
    "error": "mean |accuracy - 1|",
    "error_published": "the same, published steps",
    "full": "steps at full throughput",
    "throughput": "throughput",
    "messages": "messages per step",
    "actions": "actions per run",
    "reversals": "reversals per run",
    "settling": "steps to settle",
}
_PERCENT = ("full", "throughput")


def scaling(
    rules: Annotated[
        str, typer.Option(help="Rules to compare, separated by commas.")
    ] = "probabilistic,secure,ranked,centralised,literal",
    load: Annotated[
        str, typer.Option(help="brownian, sinusoidal, doubling, halving or monotone.")
    ] = "brownian",
    seeds: Annotated[int, typer.Option(min=1, help="Runs of each rule.")] = 30,
    first_seed: Annotated[int, typer.Option(min=0, help="The first seed.")] = 0,
    operators: Annotated[int, typer.Option(min=1, help="Operators in the line.")] = 5,
    instances: Annotated[int, typer.Option(min=1, help="Of each operator at the start.")] = 14,
    steps: Annotated[int, typer.Option(min=1, help="Time steps of a run.")] = 200,
    period: Annotated[int, typer.Option(min=1, help="Time steps between decisions.")] = 5,
    sigma: Annotated[float, typer.Option(min=0, help="Step of the Brownian motion.")] = 300.0,
    floor: Annotated[float, typer.Option(min=1, help="Least load of an operator.")] = 350.0,
    aligned: Annotated[bool, typer.Option(help="All decide at the same steps.")] = False,
    workers: Annotated[int, typer.Option(min=1, help="Processes.")] = 2,
    plots: Annotated[
        Path | None, typer.Option(help="Draw the first seed's run into this folder.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """Compare scaling rules on the papers' simulator, beside the papers' numbers."""
    from dsp.lab.scaling.setting import Setting
    from dsp.lab.scaling.study import run_study

    setting = Setting(
        operators=operators,
        instances=instances,
        steps=steps,
        period=period,
        load=load,
        sigma=sigma,
        floor=floor,
        aligned=aligned,
    )
    names = [name.strip() for name in rules.split(",") if name.strip()]
    chosen = range(first_seed, first_seed + seeds)
    console = Console(stderr=True)
    with Progress(console=console, disable=not sys.stderr.isatty(), transient=True) as bar:
        task = bar.add_task("simulating", total=len(names) * seeds)
        study = run_study(
            setting, names, chosen, workers=workers, progress=lambda: bar.advance(task)
        )
    if plots is not None:
        from dsp.lab.scaling.plots import draw

        for path in draw(plots, setting, names, first_seed):
            typer.echo(f"wrote {path}", err=True)
    if as_json:
        print_json(study)
        return
    _print(study)


def _print(study: "Study") -> None:
    setting, seeds = study.setting, study.seeds
    typer.echo(
        f"{setting['operators']} operators, {setting['instances']} instances each, "
        f"{setting['load']} load, {setting['steps']} steps, seeds {seeds[0]} to {seeds[-1]}"
    )
    typer.echo("left open by the papers:")
    for name, text in study.open_parameters.items():
        typer.echo(f"  {name}: {text}")
    cells = [
        (rule, _TITLES[name], *_shown(name, summary))
        for rule, figures in study.rules.items()
        for name, summary in figures.items()
    ]
    header = ("rule", "figure", "mean", "p5", "p95", "reference")
    print_rows(
        ([Text(cell) for cell in row] for row in cells),
        (
            "  ".join(f"{title} {cell}" for title, cell in zip(header, row, strict=True))
            for row in cells
        ),
        header=header,
    )


def _shown(name: str, summary: "Summary") -> tuple[str, str, str, str]:
    def show(value: float | None) -> str:
        if value is None:
            return "-"
        if name in _PERCENT:
            return f"{100 * value:.2f} %"
        return f"{value:.3f}" if name.startswith("error") else f"{value:.1f}"

    return show(summary.mean), show(summary.p5), show(summary.p95), show(summary.reference)
