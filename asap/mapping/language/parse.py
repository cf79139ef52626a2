"""Text to program. Every line is parsed by itself, so one slip does not hide another."""

from functools import cache
from typing import TYPE_CHECKING

from asap.core.text import plain
from asap.mapping.language.feedback import Code, Feedback, Position, delete_line, feedback, nearest, replace
from asap.mapping.language.grammar import GRAMMAR
from asap.mapping.language.program import Line, Program

if TYPE_CHECKING:
    from lark import Lark, UnexpectedInput
    from lark.lexer import TerminalDef

LONGEST = 100_000
"""Characters of a program: a line for every tensor of every layer of the largest models."""

LONGEST_LINE = 1_000
MOST_DECISIONS = 2_000
MOST_FEEDBACK = 50
_SHOWN = 40


def parse(text: str) -> tuple[Program, tuple[Feedback, ...]]:
    """The program, and what could not be read; lines that could not be read are left out of it."""
    if len(text) > LONGEST:
        line = text.count("\n", 0, LONGEST) + 1
        at = Position(line, LONGEST - text.rfind("\n", 0, LONGEST), 0)
        reason = f"a program of {len(text):,} characters; at most {LONGEST:,} are read"
        return Program(()), (feedback(Code.TOO_LARGE, at, reason, "say with patterns what is equal"),)
    lines: list[Line] = []
    found: list[Feedback] = []
    decisions = 0
    for number, source in enumerate(text.split("\n"), 1):
        line, wrong = _line(source.removesuffix("\r"), number)
        decisions += line.decision is not None
        if decisions > MOST_DECISIONS:
            reason = f"more than {MOST_DECISIONS:,} decisions"
            at = Position(number, 1, 2)
            found.append(feedback(Code.TOO_LARGE, at, reason, "say with patterns what is equal"))
            break
        lines.append(line)
        found += wrong
        if len(found) >= MOST_FEEDBACK:
            break
    return Program(tuple(lines), unread=bool(found)), tuple(found)


def _line(source: str, number: int) -> tuple[Line, list[Feedback]]:
    from lark import UnexpectedInput
    from lark.exceptions import VisitError

    from asap.mapping.language.build import Builder, RefusedError

    bare = source.lstrip(" \t")
    if not bare:
        return Line(), []
    if len(source) > LONGEST_LINE:
        at = Position(number, LONGEST_LINE + 1, LONGEST_LINE + 2)
        reason = f"a line of {len(source):,} characters; at most {LONGEST_LINE:,} are read"
        advice = "write one decision a line, with fewer names"
        return Line(), [feedback(Code.TOO_LARGE, at, reason, advice, repair=delete_line(number))]
    start = len(source) - len(bare) + 1
    try:
        tree = line_parser().parse(source)
        return Builder(Position(number, start, len(source) + 1)).transform(tree), []
    except UnexpectedInput as error:
        return Line(), [_refusal(error, source, number)]
    except VisitError as error:
        why = error.orig_exc
        if not isinstance(why, RefusedError):
            raise
        return Line(), [feedback(why.code, why.at, why.reason, why.advice, repair=delete_line(number))]


def _refusal(error: "UnexpectedInput", source: str, number: int) -> Feedback:
    """What stands where something else was expected, and what was likely meant."""
    ended = getattr(getattr(error, "token", None), "type", None) == "$END"
    column = len(source.rstrip()) + 1 if ended else error.column
    word = _word_at(source, column)
    at = Position(number, column, column + max(len(word), 1))
    expected = _expected(error)
    words = [known for known in expected if known[0].isalpha()]
    undefined = word and source.split()[0] == "order" and {"row", "fold"} <= set(words)
    code = Code.UNDEFINED_MAP if undefined else Code.SYNTAX
    found = (
        f"{plain(word, _SHOWN) or 'an invisible character'} is not expected here" if word else "the line ends too early"
    )
    near = nearest(word, words) if word else None
    if near:
        return feedback(code, at, found, f"did you mean {near}?", repair=replace(at, near))
    advice = f"expected {_list(expected)}" if expected else "write one decision a line"
    return feedback(code, at, found, advice, repair=delete_line(number))


def _word_at(source: str, column: int) -> str:
    rest = source[column - 1 :]
    length = next((place for place, c in enumerate(rest) if not (c.isalnum() or c == "_")), len(rest))
    return rest[: length or 1].strip()


def _expected(error: "UnexpectedInput") -> list[str]:
    """What the parser accepts at the place of an error, as a writer knows it."""
    names = getattr(error, "accepts", None) or getattr(error, "expected", None) or getattr(error, "allowed", None) or ()
    return sorted({_shown(name) for name in names if name not in ("COMMENT", "$END")})


def _shown(terminal: str) -> str:
    known = {
        "NAME": "a name",
        "PATTERN": "a pattern",
        "COUNT": "a number above 0",
        "INDEX": "a number",
        "KEPT": "tensors such as query+key",
        "COMPARE": "a comparison",
        "PLUS_MINUS": "+, -",
        "TIMES": "*, /, %",
        "COMMA": "a comma",
    }
    return known.get(terminal) or _terminals().get(terminal, terminal)


def _list(expected: list[str]) -> str:
    shown = expected[:20]
    return ", ".join(shown[:-1]) + (" or " if len(shown) > 1 else "") + shown[-1]


@cache
def line_parser() -> "Lark":
    """The parser of a line."""
    from lark import Lark

    return Lark(GRAMMAR, parser="lalr", start="line", maybe_placeholders=True, edit_terminals=_whole_word)


def _whole_word(terminal: "TerminalDef") -> None:
    """Let a keyword match whole words only, before any name."""
    from lark.lexer import PatternRE, PatternStr

    if isinstance(terminal.pattern, PatternStr) and terminal.pattern.value.replace("_", "").isalnum():
        terminal.pattern = PatternRE(rf"{terminal.pattern.value}(?![A-Za-z0-9_])")
        terminal.priority = 1


@cache
def _terminals() -> dict[str, str]:
    """What each terminal stands for."""
    return {
        terminal.name: terminal.pattern.value.replace("(?![A-Za-z0-9_])", "").replace("\\", "")
        for terminal in line_parser().terminals
    }
