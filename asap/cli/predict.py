"""``asap predict`` and ``asap backtest``: expectations, and how far they can be believed."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from asap.cli.output import Plain, console, print_json, print_table, progress, warn

if TYPE_CHECKING:
    from asap.diagnosis.study import Study
    from asap.experiments.intake import Statement
    from asap.prediction import Prediction

Form = Annotated[Plain, typer.Option("--format", help="How to print.")]


def predict(
    terms: Annotated[
        list[str] | None, typer.Argument(help="An experiment ID or a profile; with --config: key=value …")
    ] = None,
    config: Annotated[Path | None, typer.Option(help="MaxText YAML, config.json or experiment file.")] = None,
    hardware: Annotated[str | None, typer.Option(help="v5e-256, v5p-512, h100-64 …")] = None,
    topology: Annotated[str | None, typer.Option(help="Chips along each torus axis of a slice: 16x16.")] = None,
    slices: Annotated[int | None, typer.Option(min=1, help="Slices of the job.")] = None,
    batch: Annotated[int | None, typer.Option(min=1, help="Sequences in a step, whole job.")] = None,
    sequence: Annotated[int | None, typer.Option(min=1, help="Tokens in a sequence.")] = None,
    plan: Annotated[list[str] | None, typer.Option(help="A plan to predict; may be repeated. Default: all.")] = None,
    top: Annotated[int, typer.Option(min=1, help="Without --plan: how many of the best.")] = 10,
    format: Form = Plain.TERMINAL,
) -> None:
    """Predict step time and memory of plans, with intervals."""
    from asap.experiments.intake import Statement

    said = Statement(hardware=hardware, topology=topology, slices=slices, global_batch=batch, sequence_length=sequence)
    with progress() as show:
        show("predicting")
        study = _study(terms or [], said, config)
        found = _predictions(study, plan or [], top)
    if format is Plain.JSON:
        print_json({"schema": "asap.prediction/1", "experiment": study.experiment.id, "predictions": found})
        return
    from asap.reports.predictions import print_predictions

    print_predictions(study, found, console())


def backtest(
    runs: Annotated[Path, typer.Argument(help="Measured runs, one JSON object a line.")],
    models: Annotated[Path, typer.Option(help="Architectures, one JSON object a line.")],
    baseline: Annotated[bool, typer.Option("--baseline", help="Score the two simplest rivals as well.")] = False,
    format: Form = Plain.TERMINAL,
) -> None:
    """Score predictions against published runs that the calibration did not see."""
    from asap.prediction import RIVALS
    from asap.prediction import backtest as score
    from asap.reports.scorecard import COLUMNS, rival_rows, scorecard_rows, verdict_rows

    with progress() as show:
        show("predicting published runs")
        report = score(runs, models)
        rivals = {name: score(runs, models, baseline=name) for name in RIVALS} if baseline else {}
    if format is Plain.JSON:
        print_json(report.model_dump() | ({"baselines": rivals} if rivals else {}))
        return
    print_table(COLUMNS, scorecard_rows(report))
    print_table(("", "value"), verdict_rows(report))
    if rivals:
        print_table(("median error", "ours", *rivals), rival_rows(report, tuple(rivals.values())))
    warn(report.method)


def _study(terms: list[str], said: "Statement", config: Path | None) -> "Study":
    from asap.core.errors import UsageError
    from asap.diagnosis.study import open_study, study_of
    from asap.experiments import ExperimentStore
    from asap.experiments.intake import amend, take_in

    if config is not None:
        return study_of(take_in("configuration", said, config=config, overrides=terms))
    if len(terms) != 1:
        raise UsageError("give one experiment, or --config FILE with key=value overrides", where="asap predict")
    return open_study(terms[0], ExperimentStore(), lambda record: amend(record, said))


def _predictions(study: "Study", plans: list[str], top: int) -> "list[Prediction]":
    from asap.diagnosis.study import read_plan
    from asap.plans import AXES
    from asap.prediction.expectation import candidate_plans, expect

    if plans:
        return expect(study, [read_plan(study, text) for text in plans])
    found = expect(study, candidate_plans(study, AXES if study.experiment.model else None))
    fitting = [p for p in found if p.memory is None or p.memory.fits]
    return sorted(fitting or found, key=lambda p: p.step_time.value if p.step_time else 0.0)[:top]
