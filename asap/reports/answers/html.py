"""An answer as a fragment of HTML."""

from collections.abc import Iterator
from html import escape

from pydantic import BaseModel

from asap.reports.answers.blocks import Block, Bullets, Facts, Paste, blocks_of


def answer_to_html(answer: BaseModel) -> str:
    """Lists, tables that scroll by themselves, and lines to paste."""
    return "\n".join(part for block in blocks_of(answer) for part in _parts(block))


def _parts(block: Block) -> Iterator[str]:
    if isinstance(block, Facts):
        rows = "".join(f"<dt>{escape(label)}</dt><dd>{escape(value)}</dd>" for label, value in block.rows)
        yield f"<dl>{rows}</dl>"
        return
    yield f"<h3>{escape(block.title)}</h3>"
    if isinstance(block, Bullets):
        yield f"<ul>{''.join(f'<li>{escape(item)}</li>' for item in block.items)}</ul>"
    elif isinstance(block, Paste):
        yield f"<pre>{escape(chr(10).join(block.lines))}</pre>"
    else:
        head = "".join(f"<th>{escape(name)}</th>" for name in block.columns)
        body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in block.rows)
        yield f'<div class="scroll"><table><tr>{head}</tr>{body}</table></div>'
