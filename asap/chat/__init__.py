"""The conversation after an analysis: commands and free words are queries, and only facts change the order."""

from asap.chat.answering import Reply
from asap.chat.conversation import Conversation
from asap.chat.restore import open_conversation, restore

__all__ = ["Conversation", "Reply", "open_conversation", "restore"]
