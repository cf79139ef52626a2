"""The grammar of the mapping language as W3C-style EBNF, made from the parser's own definition."""

import re

from asap.mapping.language.grammar import GRAMMAR
from documentation.pages import ROOT

PAGE = ROOT / "docs" / "mapping.md"
_BLOCK = re.compile(r"(?<=```ebnf\n).*?(?=```)", re.DOTALL)
_RULE = re.compile(r"^[?!]?(\w+)(?:\.\d+)?:\s*(.*)$")


def ebnf() -> str:
    """Every rule and every terminal, a line each; between two of them there may be spaces."""
    lines = ["program ::= line (NEWLINE line)*"]
    for line in re.sub(r"\n +\|", " |", GRAMMAR).splitlines():
        if found := _RULE.match(line):
            name, body = found.groups()
            lines.append(f"{name} ::= {_terminal(body) if body.startswith('/') else _rule(body)}")
    return "".join(f"{line}\n" for line in lines)


def published() -> str:
    """The grammar on the page."""
    found = _BLOCK.search(PAGE.read_text(encoding="utf-8"))
    return found.group() if found else ""


def update_page() -> None:
    """Write the grammar into its page."""
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(_BLOCK.sub(lambda _: ebnf(), text), encoding="utf-8")


def _rule(body: str) -> str:
    """Without the names of alternatives; what is optional as ``(…)?``."""
    without_names = re.sub(r"\s*->\s*\w+", "", body)
    quoted = re.split(r'("[^"]*")', without_names)
    return "".join(part if part.startswith('"') else part.replace("[", "(").replace("]", ")?") for part in quoted)


def _terminal(expression: str) -> str:
    """A regular expression as character classes and strings."""
    parts = re.findall(r"\[[^\]]*\][*+]?|\\.|\.\*|.", expression.strip("/"))
    named = {".*": "[^#xA]*"}
    return " ".join(part if part[0] == "[" else named.get(part) or f'"{part[-1]}"' for part in parts)
