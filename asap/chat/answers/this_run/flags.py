"""Compiler flags: what the run sets and lacks, and what the notes say of them."""

import re

from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.question import Question
from asap.chat.understanding.words.settings.compiler_flags import flags_named
from asap.core.text import plain
from asap.reports.flags import flag_sentences, flag_summary
from asap.study.flags import flag_of, flags_of

QUERY = "XLA flags LIBTPU_INIT_ARGS latency hiding scheduler async collective fusion overlap"
_LONGEST = 700
_LONGEST_NAME = 120
_OF_COMPILER = re.compile(
    r"\b(?:xla\w*|libtpu\w*|compiler|nccl\w*|cuda\w*|env\w*|runtime|scheduler|async\w*|latency)\b", re.I
)


def names_compiler(text: str) -> bool:
    """Whether flags of the compiler or the runtime are meant, and not those of the launcher."""
    return _OF_COMPILER.search(text) is not None


def xla_flags(conversation: Conversation, answer: ReplyBuilder) -> None:
    """The review of the flags on record, and the notes on them; the launcher's lines set none."""
    from asap.knowledge import search_knowledge

    review = flags_of(conversation.study)
    answer.add(f"Compiler flags (LIBTPU_INIT_ARGS, XLA_FLAGS): {flag_summary(review)}.")
    answer.add(*(f"- {sentence}" for sentence in flag_sentences(review)), *review.exports)
    hits = search_knowledge(QUERY, 2)
    answer.add("No gain is predicted for them; the notes say:")
    for hit in hits:
        answer.add(f"- {plain(hit.note.title)} [{hit.note.id}]", f"  {plain(hit.note.body, _LONGEST)}")


def named_flags(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """What the tables say of each flag that is named: what it is for, whether this run misses it, what harm it does."""
    answer.complete = True
    for flag in flags_named(question.text):
        review = flag_of(conversation.study, flag)
        purpose = next((one.purpose for one in review.set), None)
        answer.add(f"{plain(flag.name, _LONGEST_NAME)}: {purpose or 'not in the tables, so I know nothing of it'}.")
        answer.add(*(f"- {sentence}" for sentence in flag_sentences(review)))
    answer.add("No gain is predicted for a flag: set it alone, and state the step that it measures.")
