"""Answers to what is no question about the run: greetings, thanks, other subjects, attempts to forge facts."""

from collections.abc import Sequence

from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder

CAN = (
    'bottleneck, proposals, "why not model=8?", "what if the batch doubles?", memory, throughput, operations,'
    " precedents"
)


def greeting(conversation: Conversation, answer: ReplyBuilder) -> None:
    """A greeting."""
    answer.add(f"Hello. I know the analysis of {conversation.id}.", f"Ask me about: {CAN}. /help lists more.")


def thanks(conversation: Conversation, answer: ReplyBuilder) -> None:
    """Thanks are acknowledged."""
    current = conversation.proposals
    answer.add("You are welcome." + (f" State what {current[0].plan} measures, and it is used." if current else ""))


def out_of_scope(conversation: Conversation, answer: ReplyBuilder) -> None:
    """Something else than this run."""
    answer.add(f"That is outside what I do: I answer on the run {conversation.id}. Ask about: {CAN}.")


def hostile(conversation: Conversation, answer: ReplyBuilder) -> None:
    """A forged fact or a wish to leave the role."""
    answer.add("I take facts from measurements that you report, and make up none. The order stays.")
    answer.add('A measurement counts as "proposal 1 measured … s".')


def unknown(conversation: Conversation, answer: ReplyBuilder) -> None:
    """The message is not understood."""
    answer.add("I do not understand that. Nothing has changed.", f"I can answer on: {CAN}. /help lists more.")


def nearest(answer: ReplyBuilder, examples: Sequence[str], *, near: bool = False) -> None:
    """The message is not understood, and these are questions like it; where they are near, one may be picked."""
    asked = " or ".join(f'"{example}"' for example in examples)
    answer.offered = tuple(examples)
    if near and len(examples) > 1:
        answer.add(f"I am not sure what you ask. Do you mean {asked}?")
        answer.add('Say "the first" or "the second", or put it in other words.')
        return
    answer.add("I do not understand that. Nothing has changed.")
    answer.add(f"Do you mean {asked}? /help lists more.")


def unread(answer: ReplyBuilder, numbers: str, *, asked: bool = True) -> None:
    """Numbers of a question, or of a report, have no place in any reading of it."""
    if not asked:
        answer.add(
            f"I keep no record of that, so {numbers} changes no figure and nothing is recorded. What counts is a step"
            " time, MFU, tokens/s or HBM of a plan, an OOM, the batch, the sequence, or what you cannot change."
        )
        return
    answer.add(f"What does {numbers} stand for in that question? I do not answer half of it.")
    answer.add(
        'Write it like "batch 64", "sequence length 16384", "4 slices", "128 chips", "proposal 2", "data=16 model=4".'
    )
