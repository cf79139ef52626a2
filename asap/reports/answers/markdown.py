"""An answer as Markdown."""

from collections.abc import Iterator

from pydantic import BaseModel

from asap.core.text import markdown
from asap.reports.answers.blocks import Block, Bullets, Facts, Paste, blocks_of
from asap.reports.markdown_text import fence, listing, table


def answer_to_markdown(answer: BaseModel) -> str:
    """Facts, tables, lists and fenced lines, in the order of the answer."""
    return "\n\n".join(part for block in blocks_of(answer) for part in _parts(block)) + "\n"


def _parts(block: Block) -> Iterator[str]:
    if isinstance(block, Facts):
        yield "\n".join(f"- {markdown(label)}: {markdown(value)}" for label, value in block.rows)
    elif isinstance(block, Bullets):
        yield f"**{markdown(block.title)}**"
        yield listing(block.items)
    elif isinstance(block, Paste):
        yield f"**{markdown(block.title)}**"
        yield from fence(block.lines)
    else:
        yield f"**{markdown(block.title)}**{f' ({block.basis})' if block.basis else ''}"
        yield table(block.columns, block.rows)
