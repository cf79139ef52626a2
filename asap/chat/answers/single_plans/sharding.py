"""What is split over which axis of a plan, and what every device holds whole."""

from asap.chat.answers.single_plans.whole_plan import whole
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.question import Question
from asap.core.errors import InsufficientEvidenceError
from asap.plans import Plan
from asap.plans.axes import MEANINGS, Axis
from asap.plans.zero import stage_over_replicas

_STATE = ("optimizer state", "gradients", "parameters")
"""In the order in which ZeRO's stages split them."""
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
    workload = study.experiment.workload
    answer.add(*_state(plan, stage_over_replicas(plan, workload.framework, workload.zero_stage)))
    answer.add(f"- in host memory: {' and '.join(plan.offload) or 'neither optimizer state nor parameters'}")
    for what, axes in _WHAT:
        over = [f"{axis} ({MEANINGS[axis]}, {plan.degree(axis)})" for axis in axes if plan.degree(axis) > 1]
        if over:
            answer.add(f"- {what}: over {' and '.join(over)}")


def _state(plan: Plan, by_zero: int) -> list[str]:
    """What each kind of data parallelism splits of the training state: FSDP all, plain one what ZeRO's stage says."""
    shards, copies = plan.degree("data"), plan.degree("replica")
    lines = [f"- {', '.join(_STATE)}: over data ({MEANINGS['data']}, {shards})"] if shards > 1 else []
    if copies > 1 and by_zero:
        lines.append(f"- {' and '.join(_STATE[:by_zero])}: over replica ({copies}, ZeRO stage {by_zero})")
    if copies > 1:
        lines.append(f"- {copies} copies over replica ({MEANINGS['replica']}) of {' and '.join(_STATE[by_zero:])}")
    return lines or [f"- {', '.join(_STATE)}: over no data parallelism"]
