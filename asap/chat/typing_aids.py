"""Completion of what is typed into the chat: verbs, and the plans that are known."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from asap.chat.conversation import Conversation
from asap.chat.verbs import USAGE

if TYPE_CHECKING:
    from prompt_toolkit.completion import Completer


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
