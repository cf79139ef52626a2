"""A run that was faster, or slower, at another time: "it was quicker last week, what changed?"."""

from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.question import Question
from asap.chat.understanding.words.other_times import of_a_repair, of_another_time
from asap.chat.understanding.words.questions import is_question


def tells_of_another_time(question: Question) -> bool:
    """Whether it sets the run beside itself at another time, and names no plan."""
    return of_another_time(question.text) and not question.refs.ranked and not question.refs.written


def tells_of_repair(question: Question) -> bool:
    """Whether it says that something beside the plan was mended, without a figure."""
    told = of_a_repair(question.text) and not is_question(question.text)
    return told and not question.refs.ranked and not question.refs.written and not question.amounts


def repaired(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """That it was nothing of the plan, and what to state."""
    answer.complete = True
    answer.add(
        "So something beside the plan was at fault, which no prediction here counts. Nothing is recorded.",
        'State the step as it is now, and predictions start from it: "the baseline takes 2.4 s".',
    )


def another_time(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """What is on record is one time alone, and how two are compared."""
    answer.complete = True
    answer.add(
        f"On record is {conversation.id} as it is now, and nothing of another time: what changed since, I cannot tell."
        " Nothing is recorded.",
        "With the same plan, batch and chips it is software (XLA or the framework, drivers, NCCL or libtpu), a slower"
        " device or network, the input, or other jobs. A profile of then and one of now show which operations take"
        " longer: asap compare ONE OTHER.",
        'What the step takes now counts once you state it: "the baseline takes 2.4 s".',
    )
