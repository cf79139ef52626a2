"""The verbs of the language: how each is typed, and an example that runs. Help, completion and the documents use it."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from asap.answers.registry import QUERIES
from asap.chat.conversation import Conversation
from asap.chat.language import nearest
from asap.core.errors import UsageError
from asap.core.text import plain

if TYPE_CHECKING:
    from prompt_toolkit.completion import Completer


USAGE: dict[str, tuple[str, str]] = {
    "why": ("why [not] PLAN", "explain"),
    "predict": ("predict PLAN", "predict"),
    "compare": ("compare PLAN PLAN …", "compare"),
    "memory": ("memory [PLAN]", "memory"),
    "candidates": ("candidates [HOW MANY]", "candidates"),
    "what": (
        "what if [PLAN] batch=… seq_len=… hardware=… chips=… slices=… precision=… optimizer=… setting=…",
        "what_if",
    ),
    "sweep": ("sweep batch|seq_len|chips|remat|microbatches|AXIS [VALUES]", "sweep"),
    "solve": (
        "solve batch|sequence|microbatch|chips [for PLAN]; solve step_time 4s; solve chips 4s; solve mfu 45%",
        "solve",
    ),
    "line": ("line [PLAN] [STACK] [--command]", "line"),
    "next": ("next", "next_test"),
    "worth": ("worth [PLAN] [--steps COUNT] [--price PER CHIP-HOUR] [--currency NAME]", "worth"),
    "verify": ("verify [PLAN]", "verify"),
    "settings": ("settings", "settings"),
    "flags": ("flags", "flags"),
    "run": ("run", "run"),
    "health": ("health", "health"),
    "bottleneck": ("bottleneck", "bottleneck"),
    "operations": ("operations [HOW MANY]", "operations"),
    "operation": ("operation NAME or its place", "operation"),
    "roofline": ("roofline", "roofline"),
    "trace": ("trace [CHANGE …]", "trace"),
    "capture": ("capture", "capture"),
    "plausible": ("plausible 38s|45% mfu|96000 tokens/s [for PLAN]", "plausible"),
    "precedents": ("precedents [WORDS]", "precedents"),
    "ideas": ("ideas [WORDS], or a change as it is typed: ideas key=value", "ideas"),
    "notes": ("notes WORDS", "notes"),
    "define": ("define WORD", "define"),
    "facts": ("facts", "facts"),
    "ran": ("ran PLAN = 4.1s|9% slower|38% mfu|91% hbm|14.2GiB|96000 tokens/s", "record"),
    "oom": ("oom PLAN", "record"),
    "failed": ("failed PLAN", "record"),
    "fits": ("fits PLAN", "record"),
    "slower": ("slower PLAN", "record"),
    "faster": ("faster PLAN", "record"),
    "runs": ("runs batch=512, runs network=8x400Gb, or runs PLAN", "record"),
    "limit": ("limit AXIS<=8, limit AXIS!=8, limit batch|sequence|hardware|AXIS", "record"),
    "forget": ("forget NUMBER", "retract"),
    "help": ("help [VERB], or ? VERB", ""),
    "history": ("history", ""),
    "export": ("export", ""),
    "cost": ("cost", ""),
    "model": ("model [NAME]", ""),
    "try": ("try [PLAN]", ""),
    "quit": ("quit, exit, or Ctrl-D", ""),
}
"""Each verb with its form and the query that it asks; a command of the session asks none."""
FACTS = ("record", "retract")
"""Queries that change what is on record."""
_ABOUT = {
    "help": "The verbs, or one of them.",
    "history": "What was said in this session, and what was put on record.",
    "export": "The session as Markdown.",
    "cost": "Tokens and dollars of this session by language model.",
    "model": "The language model, or change it.",
    "try": "Run a plan once with your command (`asap chat --command`); without one, have the compiler compile it.",
    "quit": "End the chat.",
    "ran": "Put on record what a plan measured.",
    "oom": "Put on record that a plan ran out of memory.",
    "failed": "Put on record that a plan failed for a reason of its own.",
    "fits": "Put on record that a plan ran.",
    "slower": "Put on record that a plan was slower than what runs.",
    "faster": "Put on record that a plan was faster than what runs.",
    "runs": "Put on record another batch, sequence, network between nodes or plan that runs.",
    "limit": "Put on record what cannot be changed.",
}
PLANS = (
    "A plan is a rank (1), now, or axes and settings in the words of any launcher: data=8 model=2, tp=2, remat=full."
)


def about(verb: str) -> str:
    """What a verb does, in a sentence or two."""
    query = USAGE[verb][1]
    return _ABOUT.get(verb) or " ".join((QUERIES[query].__doc__ or "").split())


def verbs() -> str:
    """All verbs with their forms, one a line."""
    return "\n".join([*(f"  {form}" for form, _ in USAGE.values()), PLANS, "? VERB says what it does."])


def forms(*, of_facts: bool) -> str:
    """The forms of the verbs that ask the engine, or of those that put facts on record and take them off."""
    return "; ".join(form for form, query in USAGE.values() if query and (query in FACTS) is of_facts)


def unknown(line: str) -> UsageError:
    """A line that is no command, with the form of its verb, or with the verb that it may be."""
    word, _, rest = line.partition(" ")
    verb = word.lower().lstrip("/`")
    if verb in USAGE and rest:
        return UsageError("is not understood so", where=plain(line, 60), hint=USAGE[verb][0])
    near = nearest(verb, USAGE)
    return UsageError(
        "no such command", where=plain(word, 20), hint=f"did you mean {near}?" if near else "? lists them"
    )


def completer(conversation: Conversation) -> "Completer":
    """Completes verbs at the beginning of a line, and ranks and plans behind them."""
    from prompt_toolkit.completion import Completer, Completion
    from prompt_toolkit.document import Document

    class Verbs(Completer):
        def get_completions(self, document: Document, complete_event: object) -> Iterable[Completion]:
            typed = document.text_before_cursor.lstrip().removeprefix("/").removeprefix("? ")
            word = document.get_word_before_cursor(WORD=True).removeprefix("/")
            choices = USAGE if " " not in typed else ("now", *map(str, conversation.order))
            yield from (Completion(one, -len(word)) for one in choices if one.startswith(word))

    return Verbs()
