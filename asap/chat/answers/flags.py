"""Compiler flags by which collectives are hidden: from the notes, with the reference."""

from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.core.text import plain

QUERY = "XLA flags LIBTPU_INIT_ARGS latency hiding scheduler async collective fusion overlap"
_LONGEST = 700


def xla_flags(conversation: Conversation, answer: ReplyBuilder) -> None:
    """What the notes say on compiler flags; the launcher's lines do not set them."""
    from asap.knowledge import search_knowledge

    hits = search_knowledge(QUERY, 2)
    answer.add("ASAP predicts no gain for compiler flags; its notes say of them (XLA, LIBTPU_INIT_ARGS):")
    for hit in hits:
        answer.add(f"- {plain(hit.note.title)} [{hit.note.id}]", f"  {plain(hit.note.body, _LONGEST)}")
