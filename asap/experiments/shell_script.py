"""Shell scripts read without running them: variables, long options, and simple conditions.

A variable has its value where the script sets it to something plain (``TP=4``, ``${TP:-4}``, ``$((8 * 4))``). A branch
whose condition these variables decide is taken or left; what stands under another condition is named.
"""

import ast
import operator
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from asap.experiments.documents import read_text

SCRIPTS = (".sh", ".bash", ".slurm", ".sbatch")

_ASSIGNMENT = re.compile(r"\s*(?:export\s+|readonly\s+|local\s+|declare\s+(?:-\w+\s+)*)?([A-Za-z_]\w*)=(.*)", re.DOTALL)
_ONE_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(\"[^\"]*\"|'[^']*'|[^\s\"'$`]*)")
_ASSIGNMENTS = re.compile(rf"(?:{_ONE_ASSIGNMENT.pattern}\s*)+")
_COMMAND = re.compile(r"(?:\"[^\"]*\"|'[^']*'|\$\([^)]*\)|(?<!&)&(?!&)|[^;&\"'])+")
"""What stands between ``;`` and ``&&`` on a line whose quotes are closed."""
_QUOTED = re.compile(r"\"[^\"]*\"|'[^']*'")
_VARIABLE = re.compile(r"\$(?:\{([A-Za-z_]\w*|\d)(?::?[-=]([^{}]*))?\}|([A-Za-z_]\w*|\d|#|@))")
_ARITHMETIC = re.compile(r"\$\(\(([^()]*(?:\([^()]*\)[^()]*)*)\)\)|\$\[([^\]]*)\]")
_OPTION = re.compile(r"(?<![\w-])--([A-Za-z][\w-]*)(?:=|\b)")
_SOURCE = re.compile(r"^[ \t]*(?:source|\.)[ \t]+(.+?)[ \t]*$", re.MULTILINE)
_SBATCH = re.compile(r"\s*#SBATCH\s+")
_TEST = re.compile(r"\[\[?\s+(.*?)\s+\]\]?")
_COMPARISON = re.compile(r"(\S*)\s*(==|=|!=|-eq|-ne|-gt|-ge|-lt|-le)\s*(\S*)")
_WORD = re.compile(r"\"([^\"]*)\"|'([^']*)'|([^\s\"'()|;&<>\\]+)")
_COMPARE = {
    "==": operator.eq, "=": operator.eq, "!=": operator.ne, "-eq": operator.eq, "-ne": operator.ne,
    "-gt": operator.gt, "-ge": operator.ge, "-lt": operator.lt, "-le": operator.le,
}  # fmt: skip
_ARITHMETIC_NODES = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.floordiv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod,
}  # fmt: skip
_LONGEST_LINE = 20_000
_LARGEST = 10**12


@dataclass(frozen=True)
class Option:
    """``--name value …`` as a script gives it; ``certain`` where no condition stands before it that is not decided."""

    name: str
    words: tuple[str, ...]
    line: int
    certain: bool = True


@dataclass
class Script:
    """What a script sets."""

    variables: dict[str, str] = field(default_factory=dict)
    exports: dict[str, str] = field(default_factory=dict)
    options: list[Option] = field(default_factory=list)
    sourced: list[str] = field(default_factory=list)


def read_script(text: str) -> Script:
    """Variables and options of a script, in its order."""
    script = Script()
    branches: list[bool | None] = []
    seen: list[bool | None] = []
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw[:_LONGEST_LINE]
        if sbatch := _SBATCH.match(line):
            script.options += _options(line[sbatch.end() :], script.variables, number, certain=True)
            continue
        line = _without_comment(line)
        word = line.strip().split(maxsplit=1)[0].rstrip(";") if line.strip() else ""
        if word in ("if", "elif", "else", "fi", "case", "esac"):
            _branch(word, line, script.variables, branches, seen)
            line = line.partition("then")[2] if word in ("if", "elif") else ""
        if word in ("echo", "printf"):
            continue
        if any(branch is False for branch in branches) or not line.strip():
            continue
        _take(line, number, script, certain=None not in branches)
    return script


def with_sources(text: str, folder: Path, deeper: int = 3) -> str:
    """The script with the files that it sources and that lie beside it."""

    def inline(found: re.Match[str]) -> str:
        path = folder / found[1].strip("\"'").rpartition("/")[2]
        if not deeper or not path.is_file():
            return found[0]
        return with_sources(read_text(path), folder, deeper - 1)

    return _SOURCE.sub(inline, text)


def expand(text: str, variables: dict[str, str]) -> str:
    """Variables and arithmetic replaced by their values; what the script does not set stays as it is."""

    def value(found: re.Match[str]) -> str:
        name = found[1] or found[3]
        if variables.get(name):
            return variables[name]
        return found[2].strip("\"'") if found[2] is not None else found[0]

    for _ in range(3):
        text = _VARIABLE.sub(value, text)
    return _ARITHMETIC.sub(lambda found: _calculated(found[1] or found[2]) or found[0], text)


def _take(line: str, number: int, script: Script, certain: bool) -> None:
    stripped = line.strip()
    if stripped.startswith(("source ", ". ")):
        script.sourced.append(stripped.split(maxsplit=1)[1])
    closed = not re.search(r"[\"']", _QUOTED.sub("", line))
    for command in _COMMAND.findall(line) if closed else [line]:
        for name, value in _assignments(command):
            plain_value = _plain_value(value, script.variables)
            if plain_value is not None and certain:
                script.variables[name] = plain_value
                if command.strip().startswith("export"):
                    script.exports[name] = plain_value
    script.options += _options(line, script.variables, number, certain)


def _assignments(command: str) -> list[tuple[str, str]]:
    """Names and values of ``A=1``, or of several beside each other: ``export A=1 B=2``."""
    assignment = _ASSIGNMENT.fullmatch(command)
    if assignment is None or assignment[2].lstrip().startswith("("):
        return []
    listed = command[assignment.start(1) :]
    if _ASSIGNMENTS.fullmatch(listed):
        return [(found[1], found[2]) for found in _ONE_ASSIGNMENT.finditer(listed)]
    return [(assignment[1], assignment[2])]


def _plain_value(text: str, variables: dict[str, str]) -> str | None:
    """The value of an assignment; ``None`` where a command computes it, or where it goes on in the next line."""
    text = text.strip()
    text = text.removesuffix(";").strip()
    if text[:1] in ("'", '"'):
        if text[-1] != text[0] or len(text) < 2:
            return None
        text = text[1:-1]
    elif " " in text and not text.startswith("$"):
        text = text.split()[0]
    value = expand(text, variables)
    return None if "$(" in value or "`" in value else value


def _options(line: str, variables: dict[str, str], number: int, certain: bool) -> Iterator[Option]:
    """Each option with the words up to the next one."""
    text = expand(line, variables)
    found = list(_OPTION.finditer(text))
    for index, option in enumerate(found):
        end = found[index + 1].start() if index + 1 < len(found) else len(text)
        rest = text[option.end() : end]
        if rest.startswith(")"):  # an arm of a case
            continue
        yield Option(option[1].replace("-", "_"), tuple(_words(rest)), number, certain)


def _words(text: str) -> Iterator[str]:
    if text[:1] in "\"')":
        text = text[1:]
    if text.strip().startswith("("):
        text = text.strip().replace("(", "[").replace(")", "]") if "*" in text else text
    for found in _WORD.finditer(text.replace('\\"', " ")):
        word = next(group for group in found.groups() if group is not None).strip()
        if word and word != "\\":
            yield word


def _branch(
    word: str, line: str, variables: dict[str, str], branches: list[bool | None], seen: list[bool | None]
) -> None:
    """Follow an ``if``: what stands in ``branches`` is whether the current branch is taken (``None``: not known)."""
    if word in ("if", "case"):
        branches.append(_condition(line, variables) if word == "if" else None)
        seen.append(branches[-1])
    elif branches and word in ("fi", "esac"):
        branches.pop()
        seen.pop()
    elif branches:
        before = seen[-1]
        now = _condition(line, variables) if word == "elif" else True
        branches[-1] = False if before is True else None if before is None and now is not False else now
        seen[-1] = True if True in (before, now) else None if None in (before, now) else False


def _condition(line: str, variables: dict[str, str]) -> bool | None:
    """Whether a test holds; ``None`` where the script does not tell."""
    tests = list(_TEST.finditer(line))
    if not tests:
        return None
    values = [_holds(test[1], variables) for test in tests]
    joined = [line[a.end() : b.start()] for a, b in pairwise(tests)]
    if all("||" in between for between in joined):
        return True if True in values else None if None in values else False
    if all("&&" in between for between in joined):
        return False if False in values else None if None in values else True
    return None


def _holds(test: str, variables: dict[str, str]) -> bool | None:
    negated = test.startswith("! ")
    text = expand(test.removeprefix("! "), variables).replace('"', "").replace("'", "")
    kind, _, rest = text.partition(" ")
    if kind not in ("-z", "-n"):
        found = _compared(text)
    elif "$" in rest:  # the environment may set it
        return None
    else:
        found = (not rest.strip()) == (kind == "-z")
    return found if found is None else found != negated


def _compared(text: str) -> bool | None:
    comparison = _COMPARISON.fullmatch(text.strip())
    if comparison is None or "$" in text:
        return None
    left, symbol, right = comparison.groups()
    if symbol.startswith("-"):
        if not (left.lstrip("-").isdecimal() and right.lstrip("-").isdecimal()):
            return None
        return bool(_COMPARE[symbol](int(left), int(right)))
    return bool(_COMPARE[symbol](left, right))


def _calculated(text: str) -> str | None:
    try:
        value = _evaluated(ast.parse(text.replace("$", " ").strip(), mode="eval").body)
    except (SyntaxError, ValueError, ZeroDivisionError, RecursionError, KeyError, MemoryError):
        return None
    return str(value) if abs(value) <= _LARGEST else None


def _evaluated(node: ast.AST) -> int:
    if isinstance(node, ast.Constant) and isinstance(node.value, int) and abs(node.value) <= _LARGEST:
        return node.value
    if isinstance(node, ast.BinOp):
        return _ARITHMETIC_NODES[type(node.op)](_evaluated(node.left), _evaluated(node.right))
    raise ValueError("not arithmetic")


def _without_comment(line: str) -> str:
    """The line up to a ``#`` that begins a word outside of quotes."""
    quote = ""
    for position, character in enumerate(line):
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        elif character == "#" and (position == 0 or line[position - 1] in " \t;"):
            return line[:position]
    return line
