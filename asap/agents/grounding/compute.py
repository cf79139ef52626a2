"""Derived figures: an expression over references, with units and intervals carried through.

Terms are references (``now.step_time``), numbers, and units (``400 * ms``); operators stand between blanks, as plans
hold signs of their own.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection
from functools import partial
from itertools import product

from asap.agents.grounding.prose import measure
from asap.answers.figure import CHANGE, Figure
from asap.core.errors import UsageError
from asap.core.text import plain
from asap.core.units import Provenance

LONGEST = 300
DEEPEST = 20
_TOKEN = re.compile(r"\s*(?:(?P<mark>[()])|(?P<sign>[-+*/])(?=\s)|(?P<term>[^\s()]+))")
_WEAKEST_FIRST = (
    Provenance.STATED, Provenance.PRECEDENT, Provenance.MODELLED, Provenance.COMPILED, Provenance.MEASURED,
)  # fmt: skip
_PURE = {"fraction", CHANGE, "1", "count"}


def compute(expression: str, lookup: Callable[[str], Figure], numbers: Collection[float]) -> Figure:
    """The value of an expression; its provenance is the weakest of its terms, its interval holds all of theirs.

    Args:
        expression: such as ``now.step_time - 1.step_time``.
        lookup: the figure of a reference; raises NotFoundError.
        numbers: that may stand in it: those of the run, and those that the engineer said.

    Raises:
        UsageError: it cannot be read, or its units do not go together.
        NotFoundError: a reference is of no figure.
    """
    if len(expression) > LONGEST:
        raise UsageError(f"is longer than {LONGEST} characters", where="expression")
    tokens = [found[found.lastgroup or 0] for found in _TOKEN.finditer(expression.rstrip())]
    parser = _Parser(tokens, lookup, numbers)
    found = parser.sum(0)
    if parser.tokens or not parser.refers:
        reason = "needs a reference" if not parser.tokens else f"is not understood at {plain(parser.tokens[0], 20)}"
        raise UsageError(reason, where=plain(expression, 80), hint="now.step_time - 1.step_time, blanks around signs")
    return found.model_copy(update={"id": plain(expression), "source": f"computed: {plain(expression)}"})


class _Parser:
    def __init__(self, tokens: list[str], lookup: Callable[[str], Figure], numbers: Collection[float]):
        self.tokens, self.lookup, self.numbers, self.refers = tokens, lookup, numbers, False

    def sum(self, depth: int) -> Figure:
        return self._chain("+-", partial(self._chain, "*/", self.term), depth)

    def _chain(self, signs: str, part: Callable[[int], Figure], depth: int) -> Figure:
        found = part(depth)
        while self.tokens and self.tokens[0] in signs:
            found = _combined(self.tokens.pop(0), found, part(depth))
        return found

    def term(self, depth: int) -> Figure:
        if not self.tokens or depth > DEEPEST:
            raise UsageError("ends too early" if depth <= DEEPEST else "is nested too deeply", where="expression")
        token = self.tokens.pop(0)
        if token == "(":
            found = self.sum(depth + 1)
            if self.tokens[:1] != [")"]:
                raise UsageError("lacks a closing bracket", where="expression")
            self.tokens.pop(0)
            return found
        if token.replace(".", "", 1).isdecimal():
            if float(token) not in self.numbers:
                raise UsageError("is no number of the run, and nobody said it", where=plain(token, 20))
            return _stated(float(token), "1", token)
        if (unit := measure(token)) is not None:
            return _stated(unit[1], {"share": "fraction", "ratio": "1"}.get(unit[0], unit[0]), token)
        self.refers = True
        return self.lookup(token)


def _stated(value: float, unit: str, text: str) -> Figure:
    return Figure(id=text, value=value, unit=unit, provenance=Provenance.STATED, source="in the expression")


def _combined(sign: str, one: Figure, two: Figure) -> Figure:
    ends = [(one.value, two.value)]
    ends += product((one.low or one.value, one.high or one.value), (two.low or two.value, two.high or two.value))
    if sign in "+-":
        if one.unit != two.unit and not {one.unit, two.unit} <= _PURE:
            raise UsageError(f"adds {one.unit} and {two.unit}", where="expression")
        values = [a + b if sign == "+" else a - b for a, b in ends]
        unit = one.unit
    else:
        if sign == "/" and any(b == 0 for _, b in ends):
            raise UsageError("divides by zero", where="expression")
        values = [a * b if sign == "*" else a / b for a, b in ends]
        unit = _unit(one.unit, two.unit, 1 if sign == "*" else -1)
    known = [each.provenance for each in (one, two) if each.source != "in the expression"]
    weakest = min(known, key=_WEAKEST_FIRST.index, default=Provenance.STATED)
    exact = len(set(values)) == 1
    return Figure(
        id=f"{one.id} {sign} {two.id}", value=values[0], unit=unit, provenance=weakest,
        source="in the expression" if not known else "computed",
        low=None if exact else min(values), high=None if exact else max(values),
    )  # fmt: skip


def _unit(one: str, two: str, power: int) -> str:
    """``tokens/s`` times ``s`` is ``tokens``; equal units leave a fraction."""
    powers: Counter[str] = Counter()
    for unit, sign in ((one, 1), (two, power)):
        over, _, under = ("" if unit in _PURE else unit).partition("/")
        for name, by in ((over, sign), (under, -sign)):
            if name:
                powers[name] += by
    up = [name for name, count in powers.items() for _ in range(count)]
    down = [name for name, count in powers.items() for _ in range(-count)]
    if not up and not down:
        return "fraction" if power < 0 and one not in _PURE else "1"
    return "*".join(up or ["1"]) + "".join(f"/{name}" for name in down)
