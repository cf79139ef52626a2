"""A Markdown document as chunks: one section or a part of it, with its heading path and anchor."""

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass

_COMMENT = re.compile(r"<!--.{0,2000}?-->", re.S)
_CAPTION = re.compile(r"{%-?\s*include\b[^%]{0,2000}?caption=\"((?:\\.|[^\"\\]){0,4000})\"[^%]{0,2000}?%}", re.S)
_DETAILS = re.compile(r"{%-?\s*details\s+([^\n]{0,500}?)\s*-?%}")
_LIQUID = re.compile(r"{%.{0,1000}?%}|{{.{0,300}?}}", re.S)
_FOOTNOTE = re.compile(r"<d-footnote>(.{0,2000}?)</d-footnote>", re.S)
_CITE = re.compile(r"<d-cite\b[^<>]{0,200}>(?:</d-cite>)?")
_MARKDOWN_FOOTNOTE = re.compile(r"\[\^[^\]\s]{1,100}\]:?")
_SUBSCRIPT = re.compile(r"<(sub|sup)>([^<]{0,200})</\1>")
_TAG = re.compile(
    r"</?(?:a|abbr|b|blockquote|br|center|code|details|div|em|figure|figcaption|font|h[1-6]|hr|i|iframe|img|it|kbd|li"
    r"|ol|p|pre|s|script|section|small|span|strong|style|sub|summary|sup|table|tbody|td|th|thead|tr|u|ul|video)"
    r"(?:\s[^<>]{0,1000})?/?>",
    re.I,
)
_IMAGE = re.compile(r"!\[([^\]]{0,500})\]\([^)]{0,1000}\)")
_LINK = re.compile(r"\[([^\]]{1,500})\](?:\([^)\s]{0,1000}(?:\s\"[^\"]{0,200}\")?\)|{[^}]{0,200}})")
_ROLE = re.compile(r"{[a-z:+-]{1,40}}`([^`<]{0,300}?)\s*(?:<[^`>]{0,300}>)?`")
_LABEL = re.compile(r"^\([\w .-]{1,200}\)=\s*$", re.M)
_ATTRIBUTES = re.compile(r"{:[^}]{0,300}}|{#[\w-]{1,200}}")
_EMPHASIS = re.compile(r"(?<![\w*])(\*{1,3}|_{1,3})(?=\S)(.{1,200}?)(?<=\S)\1(?![\w*])", re.S)
_MATHS = re.compile(
    r"\$\$(.{1,3000}?)\$\$|\$(?!\s)([^$\n]{1,500}?)(?<!\s)\$(?!\d)|\\\[(.{1,1500}?)\\\]|\\\((.{1,500}?)\\\)", re.S
)

_STYLE = re.compile(r"\\(?:text|textbf|textit|mathrm|mathbf|mathcal|mathit|operatorname|boldsymbol|bf|rm)\b\*?")
_FRACTION = re.compile(r"\\[dt]?frac\s*{([^{}]*)}\s*{([^{}]*)}")
_ROOT = re.compile(r"\\sqrt\s*{([^{}]*)}")
_ENVIRONMENT = re.compile(r"\\(?:begin|end)\s*{[^}]*}")
_SPACING = re.compile(r"\\(?:left|right|big|Big|bigg|Bigg|quad|qquad|displaystyle|limits|nonumber)\b|\\[,;:! ]|&|\\\\")
_SYMBOLS = {
    r"\cdot": "·", r"\times": "×", r"\leq": "≤", r"\le": "≤", r"\geq": "≥", r"\ge": "≥", r"\neq": "≠",
    r"\approx": "≈", r"\rightarrow": "→", r"\to": "→", r"\Rightarrow": "⇒", r"\implies": "⇒", r"\infty": "∞",
    r"\in": "in", r"\ll": "<<", r"\gg": ">>", r"\lt": "<", r"\gt": ">", r"\lvert": "|", r"\rvert": "|",
    r"\lceil": "ceil(", r"\rceil": ")", r"\lfloor": "floor(", r"\rfloor": ")", r"\ldots": "…", r"\dots": "…",
    r"\cdots": "…", r"\pm": "±", r"\sim": "~", r"\%": "%", r"\_": "_", r"\$": "$", r"\{": "{", r"\}": "}",
}  # fmt: skip
_COMMAND = re.compile(r"\\([A-Za-z]+|[%_${}])")


def plain_markup(text: str) -> str:
    """Markdown with liquid, HTML and LaTeX as text that can be read, searched and quoted."""
    text = _COMMENT.sub(" ", text)
    text = _CAPTION.sub(lambda found: found[1].replace('\\"', '"'), text)
    text = _DETAILS.sub(r"\1", text)
    text = _LIQUID.sub(" ", text)
    text = _CITE.sub("", text)
    text = _FOOTNOTE.sub(r" (\1)", text)
    text = _MATHS.sub(lambda found: linear_maths(next(group for group in found.groups() if group)), text)
    text = _SUBSCRIPT.sub(lambda found: ("_" if found[1] == "sub" else "^") + found[2], text)
    text = _ROLE.sub(r"\1", _LABEL.sub("", _ATTRIBUTES.sub("", text)))
    text = _LINK.sub(r"\1", _IMAGE.sub(r"\1", text))
    text = _MARKDOWN_FOOTNOTE.sub("", _TAG.sub(" ", text))
    text = _EMPHASIS.sub(r"\2", _EMPHASIS.sub(r"\2", text))
    return html.unescape(text.replace("`", ""))


def linear_maths(latex: str) -> str:
    r"""LaTeX as linear text: ``\frac{B}{X} > \frac{C}{W_\text{ici}}`` becomes ``(B) / (X) > (C) / (W_ici)``."""
    text = _SPACING.sub(" ", _ENVIRONMENT.sub(" ", latex))
    text = _STYLE.sub("", text)
    for _ in range(4):
        text = re.sub(r"([_^])\s*{([^{}]*)}", lambda found: found[1] + _grouped(found[2]), text)
        text = _ROOT.sub(r"sqrt(\1)", _FRACTION.sub(r"(\1) / (\2)", text))
        text = re.sub(r"(?<![A-Za-z]){([^{}]*)}", r"\1", text)
    text = _COMMAND.sub(lambda found: _SYMBOLS.get(found[0], found[1]), text)
    return " ".join(re.sub(r"\((\w+)\)", r"\1", text).split())


def _grouped(script: str) -> str:
    content = script.strip()
    return content if re.fullmatch(r"\\?\w+", content) else f"({content})"


WORDS_PER_CHUNK = 200  # a paragraph or two; judgement: what is found and how long it is
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
