"""``asap predict``: step time and memory of plans, with intervals."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from asap.cli.shared.options import Allow, describes_run, experiments, plan_terms
from asap.cli.shared.output import Form, Plain, console, print_json, warn, warn_about_data
from asap.cli.shared.progress import progress

if TYPE_CHECKING:
    from asap.experiments.create import Statement
    from asap.prediction.prediction import Prediction
    from asap.study.study import Study


@describes_run
def predict(
    terms: Annotated[
        list[str] | None,
        typer.Argument(
            help="An experiment ID, a configuration or a profile; then overrides of a configuration, key=value …",
            autocompletion=experiments,
        ),
    ] = None,
    config: Annotated[Path | None, typer.Option(help="A configuration, launch script, log or record.")] = None,
    *,
    stated: "Statement",
    plan: Annotated[
        list[str] | None,
        typer.Option(help="A plan to predict; may be repeated. Default: all.", autocompletion=plan_terms),
    ] = None,
    allow: Allow = None,
    top: Annotated[
        int, typer.Option(min=1, help="Without --plan: of how many meshes, each with its best levers.")
    ] = 10,
    format: Form = Plain.TERMINAL,
) -> None:
    """Predict step time and memory of plans, with intervals."""
    from asap.cli.shared.options import read_preferences

    with progress() as show:
        show("predicting")
        study = replace(_study(terms or [], stated, config), preferences=read_preferences(allow or []))
        found = _predictions(study, plan or [], top)
        now = _now(study)
    if format is Plain.JSON:
        document = {"schema": "asap.prediction/2", "experiment": study.experiment.id}
        print_json(document | {"incumbent": now, "predictions": found})
        return
    from asap.reports.predictions import print_predictions

    print_predictions(study, found, console(), None if plan else now)


def _study(terms: list[str], stated: "Statement", config: Path | None) -> "Study":
    from asap.core.errors import UsageError
    from asap.experiments import ExperimentStore
    from asap.experiments.create import amend, create_experiment
    from asap.study.open_study import open_study
    from asap.study.study import study_of

    if config is not None:
        return study_of(create_experiment("configuration", stated, config=config, overrides=terms))
    if not terms:
        raise UsageError("give an experiment, a configuration or a profile", where="predict")
    return open_study(terms[0], ExperimentStore(), lambda record: amend(record, stated), overrides=terms[1:])


def _predictions(study: "Study", plans: list[str], top: int) -> "list[Prediction]":
    from asap.answers.plan_names import in_full
    from asap.core.errors import InsufficientEvidenceError, PlanError
    from asap.prediction.predict_study import candidate_plans, expect
    from asap.proposals.selection.search import best_plans
    from asap.study.study import read_plan

    if plans:
        warn_about_data(plans, study.plan)
        known, refused = [], []
        for text in plans:
            try:
                plan = read_plan(study, in_full(text, study.plan, study.plan, changes=False))
                known += expect(study, [plan])
            except (PlanError, InsufficientEvidenceError) as error:
                refused.append(error)
        if not known:
            raise refused[0]
        for error in refused:
            warn(f"left out: {error}")
        return known
    found = expect(study, best_plans(study, top) or candidate_plans(study))
    fitting = [p for p in found if p.memory is None or p.memory.fits]
    return sorted(fitting or found, key=lambda p: p.step_time.value if p.step_time else 0.0)[:top]


def _now(study: "Study") -> "Prediction | None":
    from asap.prediction.predict_study import expect

    return expect(study, [study.plan])[0] if study.plan is not None else None
