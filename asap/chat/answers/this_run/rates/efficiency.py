"""Why MFU is what it is: the model's FLOPs at the peak of the chips, and what else the step spends its time on."""

from dataclasses import replace

from asap.chat.answers.single_plans.figures import prediction_of
from asap.chat.answers.single_plans.whole_plan import whole
from asap.chat.answers.this_run.run import bottleneck
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.scenario.completeness import missing
from asap.chat.understanding.question import Question
from asap.core.units import format_percent, format_seconds
from asap.plans import Remat
from asap.prediction.predict_study import expect
from asap.prediction.prediction import Prediction
from asap.proposals.reasons.modelled_step import modelled_step
from asap.study.study import Study

_BELOW_PEAK, _RECOMPUTED = "matmuls and attention below the peak", "recomputation"
_SHOWN = 0.01


def efficiency(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """Of the plan that is named, else of what runs now; what holds the run back where MFU is not known.

    Raises:
        InsufficientEvidenceError: nothing can be predicted.
    """
    study = conversation.study
    named = next(iter(question.plans), study.plan)
    found = prediction_of(conversation, whole(conversation, named)) if named is not None else None
    if found is None or found.mfu is None or found.step_time is None:
        answer.add(f"The MFU is unknown without {missing(study)}; what is known of the step:")
        bottleneck(conversation, answer, question)
        return
    answer.focus, step = found.plan, found.step_time.value
    rest, kind = _rest(study, found, found.mfu.value)
    answer.add(
        f"The MFU of {found.plan} is {format_percent(found.mfu.value)} ({found.mfu.provenance.value}): at the peak of"
        f" the chips the model's FLOPs take {format_seconds(found.mfu.value * step)} of a step of"
        f" {format_seconds(step)}.",
        f"The rest, {kind}: {', '.join(f'{name} {format_percent(share, 0)}' for name, share in rest)}.",
    )
    answer.add_figure(f"{found.plan}: MFU", found.mfu)
    better = next((one.prediction for one in conversation.proposals if one.plan != found.plan), None)
    if better is not None and better.mfu is not None and better.mfu.value > found.mfu.value:
        answer.add(f"{better.plan} is expected at {format_percent(better.mfu.value)} ({better.mfu.provenance.value}).")


def _rest(study: Study, found: Prediction, mfu: float) -> tuple[list[tuple[str, float]], str]:
    """Shares of the step beside the model's FLOPs, largest first, and how they are known."""
    measured = _measured(study) if found.plan == study.plan else {}
    shares = measured or _modelled(study, found)
    recomputed = recomputed_share(study, found)
    rest = {name: share for name, share in shares.items() if name != "compute"}
    rest[_RECOMPUTED] = recomputed
    rest[_BELOW_PEAK] = shares.get("compute", 0.0) - mfu - recomputed
    ordered = sorted(rest.items(), key=lambda item: -item[1])
    kind = "of the profile, with recomputation as modelled" if measured else "modelled"
    return [(name, share) for name, share in ordered if share >= _SHOWN], kind


def _measured(study: Study) -> dict[str, float]:
    """Shares by resource, where a profile lists whole steps."""
    if study.shares is None or study.shares.partial:
        return {}
    idle = {"idle": study.shares.idle} if study.shares.idle else {}
    return {name.replace("_", " "): share for name, share in study.shares.time.items() if share} | idle


def _modelled(study: Study, found: Prediction) -> dict[str, float]:
    step = modelled_step(replace(study, profile=None), found)
    return {share.name: share.fraction for share in step.shares} if step else {}


def recomputed_share(study: Study, found: Prediction) -> float:
    """Share of the step in which the backward pass computes again what the forward pass did."""
    if found.step_time is None or found.plan.remat in (None, Remat.NONE):
        return 0.0
    (without,) = expect(study, [found.plan.model_copy(update={"remat": Remat.NONE})])
    return max(compute_of(found) - compute_of(without), 0.0) / found.step_time.value


def compute_of(prediction: Prediction) -> float:
    """Seconds of a step that arithmetic adds to it."""
    return sum(part.exposed_s for part in prediction.parts if part.name == "compute")
