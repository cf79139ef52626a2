"""The conversation after an analysis: the engine answers, and only evidence changes the order of proposals."""

from asap.chat.answer_message import answer_text
from asap.chat.conversation import Conversation
from asap.chat.reply import Fact, Reply
from asap.chat.restore import open_conversation, restore
from asap.evidence.claims import Claim
from asap.evidence.fact import StatedFact

__all__ = ["Claim", "Conversation", "Fact", "Reply", "StatedFact", "answer_text", "open_conversation", "restore"]
