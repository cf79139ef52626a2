"""What is split over which axis of a plan, and what every device holds whole."""

from asap.chat.answers.whole_plan import whole
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.question import Question
from asap.core.errors import InsufficientEvidenceError
from asap.plans import Plan
from asap.plans.axes import MEANINGS, Axis

_SPLIT_BY_ZERO = {
    1: ("optimizer state",),
    2: ("optimizer state", "gradients"),
    3: ("optimizer state", "gradients", "parameters"),
}
_WHAT: tuple[tuple[str, tuple[Axis, ...]], ...] = (
    ("weights inside a layer (heads, MLP width, vocabulary)", ("model",)),
    ("experts", ("expert",)),
    ("layers", ("stage",)),
    ("sequences of the batch", ("replica", "data")),
    ("tokens of a sequence", ("seq",)),
)


def sharding(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """The tensors of a plan and the axes that split them; of what runs now if no plan is named."""
    study = conversation.study
    named = next(iter(question.plans), study.plan)
    if named is None:
        raise InsufficientEvidenceError("the current plan is not known", where=conversation.id, hint="--plan PLAN")
    plan = whole(conversation, named)
    answer.focus = plan
    answer.add(f"{plan} splits:")
    answer.add(*_state(plan, study.experiment.workload.zero_stage))
    for what, axes in _WHAT:
        over = [f"{axis} ({MEANINGS[axis]}, {plan.degree(axis)})" for axis in axes if plan.degree(axis) > 1]
        if over:
            answer.add(f"- {what}: over {' and '.join(over)}")
    if plan.degree("replica") > 1:
        answer.add(f"- nothing else over replica: {plan.degree('replica')} copies of parameters and optimizer state")


def _state(plan: Plan, zero_stage: int | None) -> list[str]:
    """What data parallelism with sharding splits, and what each device holds of it."""
    split, degree = _SPLIT_BY_ZERO.get(zero_stage or 3, ()), plan.degree("data")
    if degree == 1:
        return ["- parameters, gradients and optimizer state: not over data (no FSDP)"]
    kept = [name for name in _SPLIT_BY_ZERO[3] if name not in split]
    whole_ones = f"; {' and '.join(kept)} stay whole (ZeRO stage {zero_stage})" if kept else ""
    return [f"- {', '.join(split)}: over data ({MEANINGS['data']}, {degree}){whole_ones}"]
