"""How to verify a plan: compile it, run a few steps of it, and what the profile then has to show."""

from dataclasses import replace

from asap.chat.answers.phrasing import drafted
from asap.chat.answers.single_plans.figures import prediction_of
from asap.chat.answers.single_plans.whole_plan import plan_to_test
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.question import Question
from asap.core.errors import InsufficientEvidenceError
from asap.core.units import format_bytes, format_seconds
from asap.diagnosis.captures import no_profile
from asap.evidence.anchor import modelled_now
from asap.plans import Plan
from asap.plans.launchers import TITLES
from asap.prediction.prediction import Prediction
from asap.proposals.reasons.modelled_step import modelled_step
from asap.proposals.selection.candidate import Candidate
from asap.proposals.test_worth import STEPS, WARM_UP_STEPS
from asap.reports import phrases
from asap.study.study import Study

_DIFFERENCES, _LEAST_SHARE = 3, 0.01
"""Parts of the step that are shown, and the share of it by which they have to change."""


def verification(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """Of the plan that is named, else of the one that was spoken of or is proposed first.

    Raises:
        InsufficientEvidenceError: nothing is proposed.
    """
    study = conversation.study
    plan = plan_to_test(conversation, question)
    if plan is None:
        raise InsufficientEvidenceError("nothing is proposed that could be verified", where=conversation.id)
    found = prediction_of(conversation, plan)
    answer.focus = plan
    answer.add(f"To verify {plan}:", _compiled(study, plan))
    overrides = drafted(conversation, Candidate(found, 0.0), 1).overrides
    answer.add(
        f"- run {WARM_UP_STEPS} steps of warm-up and {STEPS} that count, with these {TITLES[overrides.stack]}:",
        *(f"  {line}" for line in overrides.lines),
        f"- record them: {no_profile(overrides.stack, study.experiment.hyperparameters).capture}",
        *_expected(conversation, found),
    )
    name = f"proposal {conversation.order.index(plan) + 1}" if plan in conversation.order else str(plan)
    answer.add(
        f'Then say "{name} measured … s" or "{name} ran out of memory": it is evidence, and may change the order.'
    )
    answer.add_figure(f"{plan}: step time", found.step_time or found.relative_step_time)


def _compiled(study: Study, plan: Plan) -> str:
    """What the compiler can tell without a chip."""
    if study.slice is not None and study.slice.chip.kind != "tpu":
        return f"- without a chip: nothing; asap verify compiles for TPUs alone, and this is {study.slice.chip.title}"
    command = f'asap verify {study.experiment.id} --plan "{plan}"'
    return f"- without a chip, in minutes: {command} (does it fit, which collectives does it run)"


def _expected(conversation: Conversation, found: Prediction) -> list[str]:
    """What a run has to show if the prediction is right: step time, HBM, and the parts of the step that change."""
    lines = []
    if found.step_time is not None:
        lines.append(f"  - step time {phrases.interval(found.step_time)} ({found.step_time.provenance.value})")
    elif found.relative_step_time is not None:
        lines.append(f"  - step time {phrases.relative_change(found)} ({found.relative_step_time.provenance.value})")
    if found.memory is not None:
        lines.append(f"  - peak HBM about {format_bytes(found.memory.total.value)} ({found.memory.verdict})")
    lines += [f"  - {name}: {then} instead of {now}" for name, now, then in _differences(conversation, found)]
    return ["- if the prediction is right, they show:", *lines] if lines else []


def _differences(conversation: Conversation, found: Prediction) -> list[tuple[str, str, str]]:
    """The parts of the step that change most, each with its time now and then. Modelled."""
    study = conversation.study
    now, then = _parts(study, modelled_now(study)), _parts(study, found)
    if not now or not then:
        return []
    moved = {name: abs(now.get(name, 0.0) - then.get(name, 0.0)) for name in {*now, *then}}
    shown = [name for name in moved if moved[name] >= _LEAST_SHARE * sum(now.values())]
    ordered = sorted(shown, key=lambda name: -moved[name])[:_DIFFERENCES]
    return [(name, _time(now.get(name)), _time(then.get(name))) for name in ordered]


def _parts(study: Study, found: Prediction | None) -> dict[str, float]:
    """Seconds that a step waits for each resource."""
    step = modelled_step(replace(study, profile=None), found)
    if step is None or found is None or found.step_time is None:
        return {}
    return {share.name: share.fraction * found.step_time.value for share in step.shares}


def _time(seconds: float | None) -> str:
    return format_seconds(seconds) if seconds else "none"
