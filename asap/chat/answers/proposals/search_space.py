"""What the proposals were chosen from: how many configurations, of which kinds, and what is not varied."""

from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.levers.table import LEVERS
from asap.proposals.selection.candidate import fits
from asap.proposals.selection.search import run_of


def search_space(conversation: Conversation, answer: ReplyBuilder) -> None:
    """How many configurations were evaluated, what differs between them, and what is the same in all."""
    ranked = conversation.revised.ranked
    fitting = sum(fits(candidate.prediction) for candidate in ranked.candidates)
    kept = f"the best of each mesh and of each kind are ranked: {len(ranked.candidates)}, of which {fitting} fit"
    if ranked.considered:
        run = run_of(conversation.study)
        tried = [lever.title for lever in LEVERS if len(lever.tried(run, frozenset())) > 1]
        answer.add(
            f"{ranked.considered:,} configurations beside what runs now were evaluated: every mesh of its chips, with"
            f" {', '.join(tried) or 'the settings of now'}; {kept}."
        )
        asked = [lever.name for lever in LEVERS if lever.on_request]
        answer.add(f"Only with asap analyze --allow, as they change what is trained: {', '.join(asked)}.")
    else:
        answer.add(f"Every mesh of its chips was evaluated, with the settings of what runs now; {kept}.")
    answer.add(*(f"- {plan} is excluded: {fact}" for plan, fact in conversation.revised.excluded.items()))
    answer.add(
        "The same in all: chips, sequence, model, kernels, compiler flags."
        ' What is not among the proposals can be asked about: "why not model=8?", "what if the batch doubles?".'
    )
