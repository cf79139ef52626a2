"""Which setting matters most: each setting of what runs now changed alone, by what that does to the step."""

from collections.abc import Iterator
from itertools import permutations

from asap.chat.answers.phrasing import expectation, fit
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.core.errors import InsufficientEvidenceError
from asap.levers.table import LEVERS
from asap.plans import Plan
from asap.plans.validity import violations
from asap.prediction.predict_study import expect, usual_axes
from asap.prediction.prediction import Prediction
from asap.proposals.reasons.changed_settings import changed_settings
from asap.proposals.selection.candidate import fits
from asap.proposals.selection.choice import MEASURABLE
from asap.proposals.selection.search import run_of
from asap.study.study import Study

_SHOWN = 5


def single_changes(conversation: Conversation, answer: ReplyBuilder) -> None:
    """The best value of each setting that fits, the one that shortens the step most first.

    Raises:
        InsufficientEvidenceError: the current plan is not known, or nothing can be predicted.
    """
    study = conversation.study
    if study.plan is None:
        raise InsufficientEvidenceError("the current plan is not known", where=conversation.id)
    changed = {plan: setting for setting, plan in _changes(study, study.plan) if plan != study.plan}
    best: dict[str, Prediction] = {}
    for prediction in expect(study, list(changed)) if changed else ():
        setting = changed[prediction.plan]
        told = prediction.method != "profile_ratios" or prediction.plan.ici != study.plan.ici
        if told and fits(prediction) and _ratio(prediction) < _ratio(best.get(setting)):
            best[setting] = prediction
    if not best:
        answer.add("No setting can be changed alone here, as far as can be predicted.")
        return
    ordered = sorted((one for one in best.values() if _ratio(one) <= 1 - MEASURABLE), key=_ratio)[:_SHOWN]
    if not ordered:
        answer.add(f"None: changed alone, no setting is expected to shorten the step by {MEASURABLE:.0%} or more.")
        return
    answer.add(f"{_named(study, ordered[0], study.plan)} matters most; each setting of what runs now changed alone:")
    for prediction in ordered:
        answer.add(f"- {_named(study, prediction, study.plan)}: {expectation(prediction)}{fit(prediction)}")
        answer.add_figure(f"{prediction.plan}: step time", prediction.relative_step_time)
    answer.focus = ordered[0].plan


def _changes(study: Study, now: Plan) -> Iterator[tuple[str, Plan]]:
    """Plans that differ from what runs now in one setting, each with its name: a lever, or two axes that share."""
    batch = study.experiment.workload.global_batch
    for lever in LEVERS:
        for value in lever.tried(run_of(study), study.wishes.allowed)[1:]:
            plan = value.change(now)
            if value.sequences and batch:
                plan = plan.model_copy(update={"microbatches": max(batch // (now.batch_shards * value.sequences), 1)})
            if not violations(plan, study.constraints):
                yield lever.name, plan
    for one, other in permutations(usual_axes(study), 2):
        factor = 2
        while getattr(now.ici, one) % factor == 0:
            degrees = {one: getattr(now.ici, one) // factor, other: getattr(now.ici, other) * factor}
            plan = study.with_micro_batch(now.with_ici(**degrees))
            if not violations(plan, study.constraints):
                yield " ".join(sorted((one, other))), plan
            factor *= 2


def _named(study: Study, prediction: Prediction, now: Plan) -> str:
    changes = changed_settings(prediction.plan, now, study.experiment.workload)
    return ", ".join(f"{each.name} {each.before}→{each.after}" for each in changes)


def _ratio(prediction: Prediction | None) -> float:
    quantity = prediction.relative_step_time if prediction else None
    return quantity.value if quantity else float("inf")
