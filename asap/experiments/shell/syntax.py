"""Bash scripts as syntax trees (tree-sitter-bash), and the text of their nodes as words of a shell."""

import re
import time
from collections.abc import Iterator
from functools import cache

import tree_sitter_bash
from tree_sitter import Language, Node, Parser

from asap.core.errors import UnreadError
from asap.experiments.shell.variables import LONGEST

_PLACEHOLDER = re.compile(r"^[ \t]*(?:export[ \t]+)?\w+=<\w[^<>\n]*>[^\\\n]*$", re.MULTILINE)
"""What a user is to fill in: ``DATA=<path of the data>``, which a shell takes as redirections; it sets nothing."""
_ENDLESS = re.compile(rf"[^\n]{{{LONGEST + 1},}}")  # a line that is longer than any command of a run
_VALUE = r"[A-Za-z_]\w*=(?:\"[^\"\n]*\"|'[^'\n]*'|[^\s;\"'()<>|&\\])*"
_ASSIGNMENTS = re.compile(rf"^[ \t]*(?:{_VALUE}[ \t]+)+{_VALUE}(?=[ \t]*$)", re.ASCII | re.MULTILINE)
"""Several in a line, which the grammar takes for the beginning of the next line's command."""
_CONTINUED = re.compile(r"\\\n")
_LONGEST_S, _CHUNK = 2.0, 65_536  # processor time of a parse: a thousand lines take a hundredth of it
_QUOTED = ("string", "raw_string", "ansi_c_string", "translated_string")


class Script:
    """The tree of a script, and the text of its nodes."""

    def __init__(self, text: str) -> None:
        self._source = _ASSIGNMENTS.sub(r"\g<0>;", _PLACEHOLDER.sub("", _ENDLESS.sub("", text))).encode()
        self.root = _parsed(self._source)

    def slice(self, start: int, end: int) -> str:
        """The text between two places."""
        return self._source[start:end].decode(errors="replace")

    def written(self, node: Node, end: int | None = None) -> str:
        """A node as it is written, up to an end: continued lines joined, outside of quotes by a newline, and without
        comments."""
        end = node.end_byte if end is None else end
        parts, place = list[str](), node.start_byte
        for inner in _quotes_and_comments(node):
            if inner.end_byte > end:
                break
            parts.append(_CONTINUED.sub("\n", self.slice(place, inner.start_byte)))
            if inner.type != "comment":
                text = self.slice(inner.start_byte, inner.end_byte)
                parts.append(text if inner.type == "raw_string" else _CONTINUED.sub("", text))
            place = inner.end_byte
        return "".join([*parts, _CONTINUED.sub("\n", self.slice(place, end))])

    def document(self, redirect: Node) -> str:
        """The lines of a here-document."""
        body = next((node for node in redirect.children if node.type == "heredoc_body"), None)
        closed = next((node for node in redirect.children if node.type == "heredoc_end"), redirect)
        if body is None:
            return ""
        start = self._source.rfind(b"\n", 0, body.start_byte) + 1
        end = closed.start_byte if closed is not redirect else body.end_byte
        return self.slice(start, end).rstrip("\n")


def _quotes_and_comments(node: Node) -> Iterator[Node]:
    """Those within a node that are in no other, in their order."""
    waiting = [node]
    while waiting:
        inner = waiting.pop()
        if inner is not node and (inner.type in _QUOTED or inner.type == "comment"):
            yield inner
        else:
            waiting += reversed(inner.children)


def quoted_texts(text: str) -> list[str]:
    """What of a command stands in quotes, with them."""
    if '"' not in text and "'" not in text:
        return []
    script = Script(text)
    found = (node for node in _quotes_and_comments(script.root) if node.type != "comment")
    return [script.slice(node.start_byte, node.end_byte) for node in found]


def unread_line(text: str) -> int | None:
    """The first line of a script that the grammar does not take; ``None`` where it takes all."""
    waiting = [Script(text).root]
    while waiting:
        node = waiting.pop()
        if node.is_missing or (node.type == "ERROR" and node.end_byte > node.start_byte):
            return node.start_point[0] + 1
        waiting += reversed([child for child in node.children if child.has_error or child.is_missing])
    return None


def branches(node: Node) -> Iterator[tuple[list[Node], list[Node]]]:
    """Conditions and bodies of an ``if``, in their order; what stands under ``else`` has no condition."""
    test, body, at_test = list[Node](), list[Node](), True
    later: list[Node] = []
    for child in node.children:
        if child.type == "then":
            at_test = False
        elif child.type in ("elif_clause", "else_clause"):
            later.append(child)
        elif child.is_named:
            (test if at_test else body).append(child)
    yield test, body
    for clause in later:
        if clause.type == "elif_clause":
            yield from branches(clause)
        else:
            yield [], list(clause.named_children)


def _parsed(source: bytes) -> Node:
    """The tree of a script; raises UnreadError where what is never closed takes the grammar too long."""
    until = time.thread_time() + _LONGEST_S

    def read(place: int, _: object) -> bytes:
        return source[place : place + _CHUNK] if time.thread_time() < until else b""

    root = _parser().parse(read).root_node
    if time.thread_time() >= until:
        raise UnreadError("is no script that the grammar of bash reads in time")
    return root


@cache
def _parser() -> Parser:
    return Parser(Language(tree_sitter_bash.language()))
