"""A Markdown document as chunks: one section or a part of it, with its heading path and anchor."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from asap.knowledge.notes.markup import plain_markup

WORDS_PER_CHUNK = 200
_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(.*?)\n---[ \t]*\n", re.S)
_TITLE = re.compile(r"^title:\s*(.+?)\s*$", re.M)
_EXPLICIT_ANCHOR = re.compile(r"{#([\w-]+)}\s*$")
_DISPLAYED_MATHS = re.compile(r"\$\$.{1,3000}?\$\$", re.S)
_SILENT_DIRECTIVES = ("toctree", "include", "raw", "figure", "image")


@dataclass(frozen=True)
class Chunk:
    """A part of one section: its headings from the outermost in, the section's anchor, and its text."""

    headings: tuple[str, ...]
    anchor: str
    part: int
    text: str


@dataclass(frozen=True)
class _Block:
    level: int
    text: str


def slug(heading: str) -> str:
    """The anchor of a heading: lowercased; letters, digits, spaces and hyphens kept; a space is a hyphen."""
    kept = "".join(c for c in heading.strip().lower() if c.isalnum() or c in " -")
    return kept.replace(" ", "-")


def split_front_matter(text: str) -> tuple[str, str]:
    """The front matter without its fences (empty if there is none), and the rest."""
    found = _FRONT_MATTER.match(text)
    return (found[1], text[found.end() :]) if found else ("", text)


def chunk_markdown(text: str, fallback_title: str) -> list[Chunk]:
    """Chunks of a document in its order, each of at most :data:`WORDS_PER_CHUNK` words where lines allow it."""
    front, body = split_front_matter(text.replace("\r\n", "\n"))
    titled = _TITLE.search(front)
    title = titled[1].strip("\"'") if titled else fallback_title
    chunks: list[Chunk] = []
    for headings, anchor, blocks in _sections(body, title):
        for part, words in enumerate(_packed(blocks)):
            chunks.append(Chunk(headings, anchor, part, words))
    return chunks


def _sections(body: str, title: str) -> Iterator[tuple[tuple[str, ...], str, list[str]]]:
    path: list[tuple[int, str]] = [(0, title)]
    anchor, blocks = "", []
    seen: dict[str, int] = {}
    for block in _blocks(body):
        if not block.level:
            blocks.append(block.text)
            continue
        yield tuple(name for _, name in path), anchor, blocks
        heading = " ".join(plain_markup(block.text).split())
        path = [entry for entry in path if entry[0] < block.level] + [(block.level, heading)]
        anchor, blocks = _unique_anchor(block.text, heading, seen), []
    yield tuple(name for _, name in path), anchor, blocks


def _unique_anchor(raw: str, heading: str, seen: dict[str, int]) -> str:
    explicit = _EXPLICIT_ANCHOR.search(raw)
    anchor = explicit[1] if explicit else slug(heading)
    repeats = seen.get(anchor, 0)
    seen[anchor] = repeats + 1
    return f"{anchor}-{repeats}" if repeats else anchor


def _blocks(body: str) -> Iterator[_Block]:
    from markdown_it import MarkdownIt

    body = _DISPLAYED_MATHS.sub(lambda found: found[0].replace("\n", " "), body)
    lines = body.split("\n")
    tokens = MarkdownIt("commonmark").enable("table").parse(body)
    for position, token in enumerate(tokens):
        if token.level or token.map is None:
            continue
        if token.type == "heading_open":
            yield _Block(int(token.tag[1]), tokens[position + 1].content)
        elif token.type in ("fence", "code_block"):
            text = _code(token.info, token.content)
            if text:
                yield _Block(0, text)
        elif text := _squeezed(plain_markup("\n".join(lines[slice(*token.map)]))):
            yield _Block(0, text)


def _code(info: str, content: str) -> str:
    directive = re.match(r"{([a-z-]+)}", info.strip())
    if directive is None:
        return content.rstrip()
    return "" if directive[1] in _SILENT_DIRECTIVES else _squeezed(plain_markup(content))


def _squeezed(text: str) -> str:
    lines = (" ".join(line.split()) for line in text.split("\n"))
    return "\n".join(line for line in lines if line and not re.fullmatch(r"[|:\- ]+", line))


def _packed(blocks: list[str]) -> Iterator[str]:
    pending: list[str] = []
    count = 0
    for piece in (piece for block in blocks for piece in _pieces(block)):
        words = len(piece.split())
        if pending and count + words > WORDS_PER_CHUNK:
            yield "\n".join(pending)
            pending, count = [], 0
        pending.append(piece)
        count += words
    if pending:
        yield "\n".join(pending)


def _pieces(block: str) -> Iterator[str]:
    if len(block.split()) <= WORDS_PER_CHUNK:
        yield block
    else:
        yield from (line for line in block.split("\n") if line.strip())
