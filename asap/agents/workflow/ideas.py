"""Untested ideas: those of the engine from the history, and those of a model, bounded by the engine."""

from collections.abc import Callable, Sequence

from asap.agents.grounding.catalogue import Catalogue
from asap.agents.workflow.protocol import UntestedIdea
from asap.answers.figure import change
from asap.core.errors import AsapError
from asap.core.text import plain
from asap.history.record import ChangeKind
from asap.prediction.predict_study import expect
from asap.prediction.prediction import Prediction
from asap.proposals.ideas import MOST, Idea, Standing, bounded, engine_ideas
from asap.study.study import Study, read_plan

LONGEST = 300
_OF_PLANS = (ChangeKind.AXIS, ChangeKind.SETTING)


def ideas_of(
    study: Study,
    incumbent: Prediction | None,
    said: Sequence[UntestedIdea],
    catalogue: Catalogue,
    shown: Callable[[str], str],
) -> tuple[Idea, ...]:
    """At most three of a model, then the engine's: those of the engine are left out where the model names them.

    Args:
        study: the run.
        incumbent: the prediction of what runs.
        said: by the model.
        catalogue: with the records and notes that were returned to it.
        shown: words of the model as they are shown.
    """
    mine = tuple(_idea(study, incumbent, one, catalogue, shown) for one in said[:MOST] if one.change.strip())
    try:
        engines = engine_ideas(study, incumbent)
    except AsapError:
        engines = ()
    named = {record for one in mine for record in one.precedents}
    return (*mine, *(one for one in engines if not named & set(one.precedents)))


def _idea(
    study: Study,
    incumbent: Prediction | None,
    said: UntestedIdea,
    catalogue: Catalogue,
    shown: Callable[[str], str],
) -> Idea:
    standing, bound = bounded(incumbent, said.touches)
    effect = None
    if said.kind in _OF_PLANS and (predicted := _predicted(study, said.change)) is not None:
        standing, bound = Standing.PREDICTED, None
        effect = change("idea", predicted.relative_step_time)
    return Idea(
        title=plain(said.change, LONGEST),
        kind=said.kind,
        change=plain(said.change, LONGEST),
        hypothesis=shown(said.hypothesis),
        refuted_by=plain(said.refuted_by, LONGEST),
        how=plain(said.how, LONGEST),
        standing=standing,
        bound=bound,
        effect=effect,
        precedents=tuple(one for one in said.precedents if one in catalogue.sources),
        by="model",
    )


def _predicted(study: Study, text: str) -> Prediction | None:
    """What the engine expects of an idea that is a plan."""
    try:
        found = expect(study, [read_plan(study, text)])[0]
    except AsapError:
        return None
    return found if found.relative_step_time is not None else None
