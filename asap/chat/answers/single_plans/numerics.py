"""Whether a plan changes what is trained: its levers say so, meshes only change the order of sums."""

from asap.chat.answers.single_plans.whole_plan import whole
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.quantities.changes import Change
from asap.chat.understanding.question import Question
from asap.levers.table import changed_levers
from asap.study.study import Study

SAME = "nothing that is trained changes: the same batch and the same operations, with sums in another order"


def numerics(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """What the plans that are named, else the proposals, change of the numerics."""
    now = conversation.study.plan
    if changed := _of_change(conversation, question):
        answer.add(changed)
        return
    plans = [whole(conversation, plan) for plan in question.plans] or conversation.order
    for plan in plans:
        if now is None or plan == now:
            continue
        changed = [lever for lever in changed_levers(now, plan) if lever.on_request]
        said = "; ".join(f"{lever.title}: {lever.changes.rpartition('numerics: ')[2]}" for lever in changed)
        answer.add(f"{plan}: {said or SAME}.")
        answer.focus = answer.focus or plan
    if not answer.lines:
        answer.add("Keeping what runs now changes nothing.")


def changes_numerics(question: Question) -> bool:
    """Whether the change that is spoken of, now or before, is one of precision or optimizer."""
    change = _spoken_of(question)
    return change is not None and bool(change.precision or change.state or change.optimizer)


def _of_change(conversation: Conversation, question: Question) -> str | None:
    change = _spoken_of(question)
    if change is None or not changes_numerics(question):
        return None
    return numerics_of(conversation.study, change)


def _spoken_of(question: Question) -> Change | None:
    if not question.change.empty:
        return question.change
    named = any(mention.way != "pointing" for mention in question.refs.mentions)
    return None if named else question.context.change


def numerics_of(study: Study, change: Change) -> str | None:
    """What a change of precision or optimizer does to what is trained; ``None`` for other changes."""
    now = study.experiment.workload.precision or "now"
    said = []
    if change.precision:
        said.append(f"matrix products in {change.precision} round otherwise than in {now}")
    said += [
        f"{name.replace('_', ' ')} in {precision} loses digits from step to step" for name, precision in change.state
    ]
    if change.optimizer:
        said.append(f"{change.optimizer} is another optimizer, with hyperparameters of its own")
    if not said:
        return None
    return (
        f"It changes the numerics: {'; '.join(said)}. What that does to the loss I cannot predict: compare the loss of"
        " some hundred steps with and without it."
    )
