"""What a remark on where a configuration comes from changes: nothing."""

from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.question import Question
from asap.chat.understanding.words.origins import COPIED


def tells_origin(question: Question) -> bool:
    """Whether it says no more than where the configuration was copied from."""
    return question.text == COPIED


def copied(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """The run on record counts, wherever its settings come from."""
    experiment = conversation.study.experiment
    model = experiment.model.name if experiment.model is not None and experiment.model.name else "its own model"
    plan = f" and {experiment.plan}" if experiment.plan is not None else ""
    answer.complete = True
    answer.add(
        f"Where it was copied from changes no figure: this run counts, with {model}{plan}. A setting that suited the"
        ' other run need not suit it: ask "is our configuration sane?", or name the setting, as in "is tp8 needed?".'
    )
