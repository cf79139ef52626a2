"""What runs now with each setting changed alone."""

from collections.abc import Iterator
from itertools import permutations

from asap.chat.conversation import Conversation
from asap.core.errors import InsufficientEvidenceError
from asap.levers.table import LEVERS
from asap.plans import Plan
from asap.plans.validity import violations
from asap.prediction.predict_study import expect, usual_axes
from asap.prediction.prediction import Prediction
from asap.proposals.reasons.changed_settings import changed_settings
from asap.proposals.selection.search import run_of
from asap.study.study import Study


def changed_alone(conversation: Conversation) -> dict[str, list[Prediction]]:
    """The predictions of the values of each setting, changed alone, that have a relative step time, fitting or not.

    Raises:
        InsufficientEvidenceError: the current plan is not known, or nothing can be predicted.
    """
    study, now = conversation.study, current_plan(conversation)
    changed = {plan: setting for setting, plan in _changes(study, now) if plan != now}
    found: dict[str, list[Prediction]] = {}
    for prediction in expect(study, list(changed)) if changed else ():
        told = prediction.method != "profile_ratios" or prediction.plan.ici != now.ici
        if told and prediction.relative_step_time is not None:
            found.setdefault(changed[prediction.plan], []).append(prediction)
    return found


def changes_in_words(study: Study, prediction: Prediction, now: Plan) -> str:
    """What a plan changes: ``data 16→64, model 16→4``."""
    changes = changed_settings(prediction.plan, now, study.experiment.workload)
    return ", ".join(f"{each.name} {each.before}→{each.after}" for each in changes)


def current_plan(conversation: Conversation) -> Plan:
    """What runs now; raises InsufficientEvidenceError where it is not known."""
    if conversation.study.plan is None:
        raise InsufficientEvidenceError("the current plan is not known", where=conversation.id)
    return conversation.study.plan


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
