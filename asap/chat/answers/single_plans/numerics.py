"""Whether a plan changes what is trained: its levers say so, meshes only change the order of sums."""

from asap.chat.answers.single_plans.whole_plan import whole
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.question import Question
from asap.levers.table import changed_levers

SAME = "nothing that is trained changes: the same batch and the same operations, with sums in another order"


def numerics(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """What the plans that are named, else the proposals, change of the numerics."""
    now = conversation.study.plan
    plans = [whole(conversation, plan) for plan in question.plans] or conversation.order
    for plan in plans:
        if now is None or plan == now:
            continue
        changed = [lever for lever in changed_levers(now, plan) if lever.on_request]
        said = "; ".join(f"{lever.title}: {lever.changes.rpartition('numerics: ')[2]}" for lever in changed)
        answer.add(f"{plan}: {said or SAME}.")
        answer.focus = plan
    if not answer.lines:
        answer.add("Keeping what runs now changes nothing.")
