"""Values of a script's variables, and conditions that they decide."""

import ast
import fnmatch
import operator
import re
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from asap.experiments.shell.words import unquoted

Values: TypeAlias = Mapping[str, str | None]
"""By name; ``None``: set to something that only a run can tell."""

LONGEST = 20_000  # characters of a text with its values: a value that makes it longer stays open
_DEEPEST = 8
_LARGEST, _LONGEST_FORMULA = 10**12, 200
_NAME = re.compile(r"[A-Za-z_]\w*|[\d#@]", re.ASCII)
_ARGUMENT = re.compile(r"\$(?:\d|\{\d+\})")
_WHOLE_ARRAY = re.compile(r"\[[@*]\]")
_DEFAULT = re.compile(r":?[-=]")
_NAMED = re.compile(r"\$(?=[A-Za-z_])", re.ASCII)
_QUOTED_ARRAY = re.compile(r"\"(\$\{\w+\[@\]\}|\$@|\$\{@\})\"", re.ASCII)
_BRACES = re.compile(r"[{}]")
_ARITHMETIC = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.floordiv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod,
}  # fmt: skip


def expand(text: str, known: Values, depth: int = 0) -> str:
    """Text with the variables that are known, or that have a default; ``$PWD`` is where the script is run."""
    text = _QUOTED_ARRAY.sub(r"\1", text)
    parts: list[str] = []
    place, length = 0, 0
    while (start := text.find("$", place)) >= 0:
        end, value = _substituted(text, start, known, depth)
        if length + start - place + len(value) > LONGEST:
            value = text[start:end]
        parts += (text[place:start], value)
        length += start - place + len(value)
        place = end
    return "".join([*parts, text[place:]])


def has_substitution(word: str) -> bool:
    """Whether a word still holds a variable or a substitution."""
    return "$" in word or "`" in word


def _substituted(text: str, start: int, known: Values, depth: int) -> tuple[int, str]:
    """Where the substitution at ``start`` ends, and what it stands for: itself if that is not known."""
    if text.startswith("$((", start):
        end = text.find("))", start)
        value = _calculated(text[start + 3 : end], known, depth) if end > 0 else None
        return (end + 2, value) if value is not None else (start + 1, "$")
    if text.startswith("${", start):
        return _in_braces(text, start, known, depth)
    if text.startswith("$(", start):
        return start + 1, "$"
    name = _NAME.match(text, start + 1)
    if name is None:
        return start + 1, text[start]
    value = known.get(name[0], "." if name[0] == "PWD" else None)
    return name.end(), value if value is not None else text[start : name.end()]


def _in_braces(text: str, start: int, known: Values, depth: int) -> tuple[int, str]:
    end = _closing(text, start + 1)
    name = _NAME.match(text, start + 2)
    if end is None or name is None:
        return start + 1, text[start]
    rest = _WHOLE_ARRAY.sub("", text[name.end() : end], count=1)
    default = _DEFAULT.match(rest)
    value, itself = known.get(name[0], "." if name[0] == "PWD" else None), text[start : end + 1]
    is_open = name[0] in known and value is None
    if default is not None and value is not None and _ARGUMENT.fullmatch(value):
        value = ""  # an argument that is not given, under a name
    if is_open or (rest and default is None):
        return end + 1, itself
    if value is not None and (value or default is None or default[0][0] != ":"):
        return end + 1, value
    if default is None or depth >= _DEEPEST:
        return end + 1, itself
    return end + 1, expand(rest[default.end() :].strip("\"'"), known, depth + 1)


def _closing(text: str, opening: int) -> int | None:
    """Where a brace closes, within the longest text."""
    depth = 0
    for found in _BRACES.finditer(text, opening, opening + LONGEST):
        depth += 1 if found[0] == "{" else -1
        if not depth:
            return found.start()
    return None


def _calculated(formula: str, known: Values, depth: int) -> str | None:
    """The value of an arithmetic expression, in which names stand for variables as well."""
    if depth >= _DEEPEST or len(formula) > _LONGEST_FORMULA:
        return None
    try:
        tree = ast.parse(_NAMED.sub(" ", expand(formula, known, depth + 1)).strip(), mode="eval")
        return str(_evaluated(tree.body, known))
    except (SyntaxError, ValueError, ZeroDivisionError, RecursionError, MemoryError):
        return None


def _evaluated(node: ast.AST, known: Values) -> int:
    match node:
        case ast.Constant(value=int(number)):
            value = number
        case ast.Name(id=name):
            value = int(known.get(name) or "not a number")
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _ARITHMETIC:
            value = _ARITHMETIC[type(op)](_evaluated(left, known), _evaluated(right, known))
        case _:
            raise ValueError("not arithmetic")
    if abs(value) > _LARGEST:
        raise ValueError("too large")
    return value


_NAMES = {
    "nodes": ("SLURM_NNODES", "SLURM_JOB_NUM_NODES"),
    "ntasks": ("SLURM_NTASKS", "SLURM_NPROCS"),
    "ntasks-per-node": ("SLURM_NTASKS_PER_NODE",),
    "gpus-per-node": ("SLURM_GPUS_PER_NODE", "SLURM_GPUS_ON_NODE"),
    "gres": ("SLURM_GPUS_ON_NODE",),
}
_SHORT = {"-N": "--nodes", "-n": "--ntasks"}
_OPTION = re.compile(r"--([a-z-]{1,60})[= ](?:gpu:)?(?:[\w.-]{1,60}:)?([1-9]\d{0,6})", re.ASCII)
_KIND = re.compile(
    r"(?:^[ \t]*#SBATCH\s|\b(?:sbatch|srun|salloc)\s)[^\n]{0,500}?"
    r"(?:--gres[= ](?:\S*,)?gpu:|--gpus(?:-per-(?:node|task))?[= ]|-G\s*)(?P<kind>[A-Za-z][\w.-]*):\d",
    re.MULTILINE,
)


def gpu_of_directives(text: str) -> str | None:
    """The kind of GPU that a script asks Slurm for: ``--gres=gpu:a100:4``; ``None`` where it names none, or several."""
    kinds = {found["kind"].casefold() for found in _KIND.finditer(text)}
    return next(iter(kinds)) if len(kinds) == 1 else None


def slurm_variables(words: Sequence[str], known: Mapping[str, str | None]) -> dict[str, str]:
    """Variables by one directive, and what follows from it and those before.

    Args:
        words: of the directive, ``sbatch`` first.
        known: variables before it.
    """
    text = " ".join(_SHORT.get(word, word) for word in words)
    found = {name: said[2] for said in _OPTION.finditer(text) for name in _NAMES.get(said[1], ())}
    both = {**known, **found}
    nodes, each = both.get("SLURM_NNODES"), both.get("SLURM_NTASKS_PER_NODE")
    if nodes and each and "SLURM_NTASKS" not in both:
        found |= dict.fromkeys(_NAMES["ntasks"], str(int(nodes) * int(each)))
    return found


_TEST = re.compile(r"\[\[?\s(.*)\s\]\]?", re.DOTALL)
_SEVERAL = re.compile(r"\s(?:&&|\|\||-a|-o)\s")
_COMPARISON = re.compile(r"(?:(\S*)\s+)?(==|=|!=|-eq|-ne|-gt|-ge|-lt|-le)(?:\s+(\S*))?")

_COMPARE = {
    "==": fnmatch.fnmatchcase, "=": operator.eq, "!=": operator.ne, "-eq": operator.eq, "-ne": operator.ne,
    "-gt": operator.gt, "-ge": operator.ge, "-lt": operator.lt, "-le": operator.le,
}  # fmt: skip


def holds(condition: str, known: Values) -> bool | None:
    """Whether a test holds; ``None`` where the script does not tell."""
    test = _TEST.fullmatch(condition.strip())
    return _holds(test[1].strip(), known) if test and not _SEVERAL.search(test[1]) else None


def _holds(test: str, known: Values) -> bool | None:
    bare = test.removeprefix("! ")
    kind, _, operand = bare.partition(" ")
    if kind in ("-z", "-n"):
        found = _is_empty(operand, known)
        found = found if found is None or kind == "-z" else not found
    else:
        found = _compared(bare, known)
    return found if found is None or test == bare else not found


def _is_empty(operand: str, known: Values) -> bool | None:
    """Whether a text is empty, where variables that nothing sets are."""
    text = unquoted(expand(operand, known)).strip()
    text = _ARGUMENT.sub("", text)
    name = re.fullmatch(r"\$\{?(\w+)(?:[:-]+|\+x)?\}?", text, re.ASCII)
    if name and name[1] not in known:
        return True
    return None if has_substitution(text) else not text


def _compared(test: str, known: Values) -> bool | None:
    comparison = _COMPARISON.fullmatch(unquoted(expand(test, known)).strip())
    if comparison is None:
        return None
    left, symbol, right = comparison.groups(default="")
    if "" in (left, right):
        left, right = _ARGUMENT.sub("", left), _ARGUMENT.sub("", right)
    if has_substitution(left + right):
        return None
    if symbol.startswith("-"):
        if not all(re.fullmatch(r"-?\d{1,12}", side, re.ASCII) for side in (left, right)):
            return None
        return bool(_COMPARE[symbol](int(left), int(right)))
    return bool(_COMPARE[symbol](left, right))
