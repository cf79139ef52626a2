"""Tests of a shell script, where its own variables decide them: ``[ "$TP" -gt 1 ]``, ``[[ -z $X ]]``, ``((TP > 1))``.

Where a test asks for what is empty, arguments and variables that nothing sets are, as they are in ``${TP:-4}``.
"""

import fnmatch
import operator
import re

from asap.core.numbers import digits
from asap.experiments.shell.variables import Values, expand, has_substitution
from asap.experiments.shell.words import unquoted

_TEST = re.compile(r"\[\[?\s(.*)\s\]\]?", re.DOTALL)
_COMPARISON = re.compile(r"(?:(\S*)\s+)?(==|=|!=|-eq|-ne|-gt|-ge|-lt|-le)(?:\s+(\S*))?")
_ARITHMETIC = re.compile(r"\(\((.*)\)\)", re.DOTALL)
_INEQUALITY = re.compile(r"([^<>=!|]+)(==|!=|>=|<=|>|<)([^<>=!|]+)")
_ARGUMENT = re.compile(r"\$(?:\d|\{\d+\})")
_COMPARE = {
    "==": fnmatch.fnmatchcase, "=": operator.eq, "!=": operator.ne, "-eq": operator.eq, "-ne": operator.ne,
    ">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le,
    "-gt": operator.gt, "-ge": operator.ge, "-lt": operator.lt, "-le": operator.le,
}  # fmt: skip


def holds(condition: str, known: Values) -> bool | None:
    """Whether a test holds; ``None`` where the script does not tell."""
    if (arithmetic := _ARITHMETIC.fullmatch(condition.strip())) is not None:
        return _joined([_calculated(part, known) for part in arithmetic[1].split("&&")], ["&&"])
    test = _TEST.fullmatch(condition.strip())
    return _inside(test[1], known) if test else None


def matches(word: str, patterns: str, known: Values) -> bool | None:
    """Whether an arm ``a|b)`` of a ``case`` takes a word."""
    value = unquoted(expand(word, known))
    if has_substitution(value) or has_substitution(patterns):
        return None
    return any(fnmatch.fnmatchcase(value, unquoted(pattern.strip())) for pattern in patterns.split("|"))


def _joined(values: list[bool | None], between: list[str]) -> bool | None:
    if all(symbol == "||" for symbol in between):
        return True if True in values else None if None in values else False
    if all(symbol == "&&" for symbol in between):
        return False if False in values else None if None in values else True
    return None


def _inside(test: str, known: Values) -> bool | None:
    parts = re.split(r"\s(&&|\|\||-a|-o)\s", test)
    symbols = [{"-a": "&&", "-o": "||"}.get(symbol, symbol) for symbol in parts[1::2]]
    return _joined([_holds(part.strip(), known) for part in parts[::2]], symbols)


def _holds(test: str, known: Values) -> bool | None:
    bare = test.removeprefix("! ")
    kind, _, operand = bare.partition(" ")
    if kind in ("-z", "-n"):
        found = _is_empty(operand, known)
        found = found if found is None or kind == "-z" else not found
    else:
        found = _compared(bare, known)
    return _negated(found, test != bare)


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


def _calculated(test: str, known: Values) -> bool | None:
    """Whether ``VPP > 1`` holds, of whole numbers."""
    found = _INEQUALITY.fullmatch(test)
    if found is None:
        return None
    left, right = (digits(expand(f"$(({side.strip()}))", known)) for side in (found[1], found[3]))
    if left is None or right is None:
        return None
    return left == right if found[2] == "==" else bool(_COMPARE[found[2]](left, right))


def _negated(value: bool | None, negated: object) -> bool | None:
    return not value if negated and value is not None else value
