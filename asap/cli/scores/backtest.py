"""``asap accuracy backtest``: predictions of published runs against what was measured."""

from pathlib import Path
from typing import Annotated

import typer

from asap.cli.shared.output import Plain, print_json, print_table, warn
from asap.cli.shared.progress import progress


def backtest(
    runs: Annotated[list[Path], typer.Argument(help="Measured runs, one JSON object a line.")],
    models: Annotated[Path, typer.Option(help="Architectures, one JSON object a line.")],
    baseline: Annotated[bool, typer.Option("--baseline", help="Score constant MFU and roofline as well.")] = False,
    loop: Annotated[
        bool, typer.Option("--loop", help="Tune each group of four or more shardings, run by run.")
    ] = False,
    format: Annotated[Plain, typer.Option("--format", help="How to print.")] = Plain.TERMINAL,
) -> None:
    """Score predictions on published runs that no fit had seen."""
    from asap.calibration.backtest.backtest import backtest as score
    from asap.calibration.backtest.baselines import BASELINES
    from asap.calibration.backtest.blocks import TITLES
    from asap.calibration.backtest.tables import (
        ADVICE_COLUMNS,
        BLOCK_COLUMNS,
        COLUMNS,
        OWN_COLUMNS,
        advice_rows,
        baseline_rows,
        block_rows,
        loop_rows,
        own_runs_rows,
        ranking_and_memory_rows,
        scorecard_rows,
    )

    with progress() as show:
        show("predicting published runs")
        report = score(runs, models, loop=loop)
        baselines = {name: score(runs, models, baseline=name) for name in BASELINES} if baseline else {}
    if format is Plain.JSON:
        print_json(report.model_dump() | ({"baselines": baselines} if baselines else {}))
        return
    for name, block in report.blocks.items():
        print_table((TITLES[name], *BLOCK_COLUMNS[1:]), block_rows(block))
    print_table(COLUMNS, scorecard_rows(report))
    print_table(ADVICE_COLUMNS, advice_rows(report.blocks))
    print_table(OWN_COLUMNS, own_runs_rows(report.own_runs))
    print_table(("", "value"), ranking_and_memory_rows(report))
    if report.loop:
        print_table(("tuning run by run", "value"), loop_rows(report.loop))
    if baselines:
        print_table(("median error", "ours", *baselines), baseline_rows(report, tuple(baselines.values())))
    warn(report.method)
