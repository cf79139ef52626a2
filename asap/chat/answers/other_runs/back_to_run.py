"""Back to the run as it is, after something was supposed of it: "back to normal"."""

from asap.chat.answers.phrasing import list_proposals
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.question import Question


def back_to_run(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """Say that nothing is supposed any longer, and what holds."""
    answer.complete, answer.starts_anew = True, True
    answer.focus = next(iter(conversation.order), None)
    workload = conversation.study.experiment.workload
    if question.context.change is None or question.context.change.empty:
        answer.add("The last line put nothing on record and supposed nothing: there is nothing to go back from.")
    else:
        answer.add("What was supposed is dropped; from here on figures are of the run as it is.")
    size = [f"global batch {workload.global_batch}"] if workload.global_batch else []
    length = [f"sequence {workload.sequence_length}"] if workload.sequence_length else []
    answer.add(*([f"now: {', '.join([*size, *length])}"] if size or length else []))
    if conversation.evidence:
        answer.add("What you stated stays on record: /facts lists it, /forget takes it back.")
    list_proposals(conversation, answer)
