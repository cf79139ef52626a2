"""What if the batch, the sequence, the slice or the rematerialisation were different? Nothing is recorded."""

from asap.chat.answers.changed_hardware import change_hardware
from asap.chat.answers.changed_remat import change_remat
from asap.chat.answers.changed_workload import change_workload
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.changes import Subject, changed_subject


def what_if(conversation: Conversation, answer: ReplyBuilder, text: str) -> None:
    """Evaluate the change that is asked for; raises InsufficientEvidenceError where the engine cannot tell."""
    match changed_subject(text):
        case Subject.BATCH:
            change_workload(conversation, answer, "global_batch", text)
        case Subject.SEQUENCE:
            change_workload(conversation, answer, "sequence_length", text)
        case Subject.SLICE:
            change_hardware(conversation, answer, text)
        case Subject.REMAT:
            change_remat(conversation, answer, text)
        case None:
            answer.add("Say what changes: the batch, the sequence, the slice, the rematerialisation, or a whole plan.")
