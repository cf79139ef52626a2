"""What can be asked in a chat, in words and by slash commands."""

from collections.abc import Sequence
from itertools import zip_longest

_COLUMN = 40
_FACTS = """\
State facts, and they are used: "proposal 2 measured 2.1 s", "our batch is 512",
"proposal 1 ran out of memory", "we cannot change the batch". "Undo that" takes
one back."""

COMMANDS = """\
/help            this list
/proposals       the current proposals
/explain N       reasons, costs, figures and citations of a proposal
/compare N M     proposals or plans side by side
/whatif PLAN     what the engine predicts for a plan, or for "batch doubles"
/facts           facts stated or verified, and the plans that they exclude
/forget N        take a fact back
/sources         where facts and figures come from
/history         your messages and evidence in this session
/verify N        compile a proposal with the TPU compiler (takes minutes)
/try N           run a proposal with the command of `asap chat`, or compile it
/export          the whole session as Markdown
/cost            calls and tokens of language models in this session
/model NAME      switch to another language model
/quit            end the chat; `asap chat` continues it later"""


def questions(examples: Sequence[str]) -> list[str]:
    """Example questions in two columns of a screen, and how facts are stated.

    Args:
        examples: of the kinds of questions that are answered.
    """
    half = (len(examples) + 1) // 2
    pairs = zip_longest(examples[:half], examples[half:], fillvalue="")
    rows = [f"{left:<{_COLUMN}}{right}".rstrip() for left, right in pairs]
    return ["Ask about this run, for instance:", *rows, *_FACTS.splitlines()]
