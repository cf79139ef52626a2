"""Escaping of untrusted text, one function for each output.

Operation names, run names, comments, notes and records come from files that others wrote. Each output needs its own
escape: the terminal against control sequences, Markdown against markup, mentions and HTML, prompts against text that
closes its quotation.
"""

import re
import textwrap
import unicodedata
from collections.abc import Collection
from typing import Any

_MARKDOWN = re.compile(
    r"[\\`*{}\[\]<>#|~@&]"
    r"|(?<![^\W_])_|_(?![^\W_])"  # not inside a word
    r"|:(?=\S)"  # of an address
    r"|^[-+](?![\w.])|^=(?==*$)"  # a list, a line below a heading
)
_NUMBERED = re.compile(r"^(\d{1,9})([.)])(?=\s|$)")
_SECRET = re.compile(
    r"AIza[0-9A-Za-z_\-]{30,}"
    r"|ya29\.[0-9A-Za-z_\-]+"
    r"|sk-[0-9A-Za-z_\-]{16,}"
    r"|gh[pousr]_[0-9A-Za-z]{20,}"
    r"|hf_[0-9A-Za-z]{20,}"
    r"|xox[abprs]-[0-9A-Za-z\-]{10,}"
    r"|A(?:KIA|SIA)[0-9A-Z]{16}"
    r"|github_pat_[0-9A-Za-z_]{20,}|glpat-[0-9A-Za-z_\-]{16,}|npm_[0-9A-Za-z]{20,}|pypi-[0-9A-Za-z_\-]{20,}"
    r"|[sr]k_live_[0-9A-Za-z]{16,}|nvapi-[0-9A-Za-z_\-]{20,}|SG\.[0-9A-Za-z_\-]{16,}\.[0-9A-Za-z_\-]{16,}"
    r"|eyJ[0-9A-Za-z_\-]{8,}\.eyJ[0-9A-Za-z_\-]{8,}\.[0-9A-Za-z_\-]+"
    r"|(?<=://hooks\.slack\.com/services/)[0-9A-Za-z/]+"
    r"|(?i:(?<=accountkey=)[0-9a-z+/=]{16,})"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)"
    r"|(?i:(?<=bearer )[0-9a-z._\-]{16,})"
    r"|do[opr]_v1_[0-9a-f]{64}|shp(?:at|ca|pa|ss)_[0-9a-f]{32}|dapi[0-9a-f]{32}|(?:ls|lin)_(?:api|v2)_[0-9A-Za-z]{20,}|dckr_pat_[0-9A-Za-z_\-]{20,}|sq0[a-z]{3}-[0-9A-Za-z_\-]{20,}"
)
_INVISIBLE = {"Cc", "Cf", "Cs", "Co", "Cn"}
REDACTED = "[redacted]"
_KEPT = "\u00a0"
WITH_UNIT = re.compile(r"(?<=\d) (?=(?:%|[nµm]?s|min|hours|[KMGT]i?B|[KMGTP]?FLOP/s|tokens|chips)(?![\w]))")
"""The blank between a number and its unit."""
INSIDE_ITEM = re.compile(r"(?<!,) ")
"""A blank inside of an item of a list with commas."""


def whole(value: Any) -> Any:
    """Text, or plain JSON, in which halves of surrogate pairs are replaced: Unicode has no characters for them."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8") if not value.isascii() else value
    if isinstance(value, dict):
        return {whole(key): whole(item) for key, item in value.items()}
    return [whole(item) for item in value] if isinstance(value, list) else value


def plain(text: object, limit: int | None = None) -> str:
    """One line without control, format or bidirectional characters; cut to ``limit`` characters."""
    visible = (c for c in str(text) if c.isspace() or unicodedata.category(c) not in _INVISIBLE)
    clean = " ".join("".join(visible).split())
    return clean if limit is None or len(clean) <= limit else clean[: limit - 1] + "…"


def told_apart(texts: Collection[str], limit: int) -> dict[str, str]:
    """Each text as one line of at most ``limit`` characters; of those that begin alike, from where they differ on."""
    head, starts = limit // 3, dict.fromkeys(map(plain, texts), 0)

    def cut(text: str) -> str:
        start = starts[text]
        return plain(text, head) + plain(text[start:], limit - head) if start else plain(text, limit)

    for _ in range(limit):
        alike: dict[str, list[str]] = {}
        for text in starts:
            alike.setdefault(cut(text), []).append(text)
        if len(alike) == len(starts):
            break
        for group in (group for group in alike.values() if len(group) > 1):
            first, last = min(group), max(group)
            common = next((at for at, one in enumerate(first) if not last.startswith(one, at)), len(first))
            word = max(first.rfind(mark, 0, common) for mark in "<(, ") + 1
            starts |= dict.fromkeys(group, word if word > max(map(starts.__getitem__, group)) else common)
    return {text: cut(plain(text)) for text in texts}


def plain_lines(text: str) -> str:
    """Lines with the blanks before them, each otherwise as :func:`plain` has it."""
    return "\n".join(f"{line[: len(line) - len(line.lstrip(' '))]}{plain(line)}" for line in text.splitlines())


def wrapped(text: str, width: int, together: re.Pattern[str] = WITH_UNIT, **how: Any) -> list[str]:
    """A text in lines of a width, broken at no hyphen and at none of the blanks of ``together``; one empty line where
    there is nothing."""
    lines = textwrap.wrap(together.sub(_KEPT, text), width, break_on_hyphens=False, **how)
    return [line.replace(_KEPT, " ") for line in lines] or [""]


def markdown(text: object, limit: int | None = None) -> str:
    """Plain text that Markdown shows as it is: no markup, no HTML, no link, no mention.

    Signs without a meaning where they stand are left as they are, to keep the source readable.
    """
    escaped = _MARKDOWN.sub(lambda found: f"&#{ord(found.group())};", plain(text, limit))
    return _NUMBERED.sub(lambda found: f"{found[1]}&#{ord(found[2])};", escaped)


def fenced(text: object, source: str) -> str:
    """Quoted material for a prompt, which cannot close its own fence."""
    body = str(text).replace("<", "‹").replace(">", "›")
    label = plain(source, 80).replace('"', "'").replace("<", "‹").replace(">", "›")
    return f'<data source="{label}">\n{body}\n</data>'


def redact(text: str) -> str:
    """Replace what looks like a key, token or password."""
    return _SECRET.sub(REDACTED, text)
