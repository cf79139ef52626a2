"""The conversation after an analysis: it answers from the engine, and moves for evidence alone."""

from asap.agents.chat.conversation import Conversation, open_conversation, restore
from asap.agents.chat.evidence import Claim, Evidence
from asap.agents.chat.reply import Fact, Reply
from asap.agents.chat.replying import reply

__all__ = ["Claim", "Conversation", "Evidence", "Fact", "Reply", "open_conversation", "reply", "restore"]
