"""Wishes to try a configuration, and doubts about a prediction: what is meant, and what would settle them."""

import re
from dataclasses import dataclass
from pathlib import Path

from asap.chat.conversation import Conversation

_ASKED = re.compile(
    r"\W*(?:(?:please|ok(?:ay)?|yes|so|then|now|and|let'?s|let us|can you|could you|why not|just)\W+)*"
    r"(?:try|run|test|measure|evaluate|benchmark)(?: out)?\s+(?P<what>.+?)(?:\W+(?:then|please|for real|now|out))*\W*",
    re.IGNORECASE,
)
_SPOKEN_OF = re.compile(r"(?:it|that|this|them)(?: (?:one|plan|configuration))?", re.IGNORECASE)
_NAMED = re.compile(
    r"(?:(?:the )?(?:proposal|option|candidate|plan|number|no\.?|#)\s*)?#?\d|(?:the )?(?:first|second|third)"
    r"(?: (?:one|proposal|option|plan))?|\w+=[\w+]+(?:[\s,]+\w+=[\w+]+)*",
    re.IGNORECASE,
)
_DOUBTED = re.compile(r"\b(?:really|for real)\W*\?\W*$", re.IGNORECASE)


@dataclass(frozen=True)
class RunCommand:
    """How the chat may run a configuration.

    Args:
        command: of the user, with ``{overrides}`` or ``{config}``.
        agreed: whether its cost was agreed to when the chat was started.
        folder: that it runs in.
        config: the file of which ``{config}`` is a copy.
    """

    command: str
    agreed: bool = False
    folder: Path = Path()
    config: Path | None = None


def wanted(text: str) -> str | None:
    """What a line asks to try: words that name a proposal or a plan, empty for what was spoken of last.

    ``None`` where it asks for nothing of the kind, as "try a larger batch" or "run 2 took 3 s".
    """
    found = _ASKED.fullmatch(text.strip())
    if found is None:
        return None
    if _SPOKEN_OF.fullmatch(found["what"]):
        return ""
    return found["what"] if _NAMED.fullmatch(found["what"]) else None


def doubted(text: str) -> bool:
    """Whether a line doubts what is predicted: "and with less rematerialisation, really?"."""
    return _DOUBTED.search(text) is not None


def offer(conversation: Conversation, how: RunCommand | None) -> str | None:
    """What would settle a doubt about the plan that was spoken of last; ``None`` where none was."""
    if conversation.focus is None:
        return None
    if how is None:
        return f"It is a prediction. /try has the TPU compiler compile it, which takes minutes: {conversation.focus}."
    return f'It is a prediction. Say "try it", and it is run with your command: {conversation.focus}.'
