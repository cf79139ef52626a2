"""What the engine cannot tell, in one line with what it can: serving, and what the model learns."""

from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder


def serving(conversation: Conversation, answer: ReplyBuilder) -> None:
    """A question on inference: a training run keeps no KV cache and serves no requests."""
    answer.add(
        f"I only know {conversation.id} as a training run: it keeps no KV cache and serves no requests. I can tell its"
        " HBM by part, its step time and its tokens/s."
    )


def learning(conversation: Conversation, answer: ReplyBuilder) -> None:
    """A question or a remark on loss, accuracy or convergence."""
    answer.add(
        "I do not know the loss, the accuracy or the learning rate: I predict how fast a step runs and what it holds in"
        " HBM. Nothing is recorded, and no plan ranks differently for it."
    )
