"""From the parse tree of a line to a decision."""

from typing import Any, get_args

from lark import Token
from lark.visitors import Transformer_NonRecursive

from asap.core.numbers import LARGEST_COUNT
from asap.mapping.language.expression import DEEPEST, Expression, Number, Operation, Variable
from asap.mapping.language.feedback import Code, Position
from asap.mapping.language.program import (
    Block,
    Count,
    Degree,
    IndexMap,
    Keyword,
    Layers,
    Line,
    Mesh,
    Order,
    Setting,
    Sharding,
    TensorSetting,
    Walk,
    Word,
)
from asap.plans.remat import Remat, SavedTensors


class RefusedError(Exception):
    """A line that the grammar allows and that means nothing, or more than any program needs."""

    def __init__(self, code: Code, at: Position, reason: str, advice: str):
        super().__init__(reason)
        self.code, self.at, self.reason, self.advice = code, at, reason, advice


_SETTINGS = get_args(Keyword)
_WORDS = ("memory", "stored", "type", "precision", "known", "operand", "way", "switch")


class Builder(Transformer_NonRecursive):
    """Builds the decision of one line; ``start`` is where its first word stands. Methods are named like rules."""

    def __init__(self, start: Position):
        super().__init__()
        self._start = start

    def __default__(self, data: str, children: list[Any], meta: Any) -> Any:
        data = str(data)
        if data in _SETTINGS:
            return Setting(data, children[0], self._start)  # pyright: ignore[reportArgumentType]
        if data in ("shard", "constrain"):
            names, dimension, axes, layers = children
            return Sharding(data, names, dimension, axes, layers, self._start)  # pyright: ignore[reportArgumentType]
        if data in ("place", "layout", "dtype", "remat"):
            *names, value, layers = children
            named = names[0] if names else ()
            return TensorSetting(data, named, value, layers, self._start)  # pyright: ignore[reportArgumentType]
        return self.NAME(children[0]) if data in _WORDS else tuple(children)

    def NAME(self, token: Token) -> Word:  # noqa: N802
        return Word(str(token), self._at(token))

    PATTERN = NAME

    def COUNT(self, token: Token) -> Count:  # noqa: N802
        at = self._at(token)
        if len(token) > len(str(LARGEST_COUNT)) or int(token) > LARGEST_COUNT:
            raise RefusedError(Code.TOO_LARGE, at, f"a number above {LARGEST_COUNT:,}", "write a smaller one")
        return Count(int(token), at)

    INDEX = COUNT

    def COMMENT(self, token: Token) -> str:  # noqa: N802
        return str(token)[1:].strip()

    def line(self, parts: list[Any]) -> Line:
        return Line(parts[0], parts[1] or "")

    def mesh(self, degrees: list[Degree]) -> Mesh:
        return Mesh(tuple(degrees), self._start)

    def degree(self, parts: list[Any]) -> Degree:
        return Degree("dcn" if parts[0] else "ici", *parts[1:])

    def order(self, parts: list[Walk | Block | IndexMap]) -> Order:
        return Order(parts[0], self._start)

    def walk(self, parts: list[Any]) -> Walk:
        return Walk(parts[0].value)

    def block(self, parts: list[tuple[Count, ...]]) -> Block:
        return Block(parts[0])

    def map(self, parts: list[Any]) -> IndexMap:
        return IndexMap(tuple(parts[:-1]), parts[-1])

    def axes(self, axes: list[Any]) -> tuple[Word, ...]:
        return tuple(axis for axis in axes if isinstance(axis, Word))

    def layers(self, parts: list[Any]) -> Layers:
        first, last = parts
        return Layers(first, last or first)

    def policy(self, parts: list[Token]) -> Word:
        """A name, or the tensors that are kept in the order in which plans write them."""
        text = "".join(parts)
        at = self._at(parts[0]).to(self._at(parts[-1]))
        if text not in tuple(Remat):
            try:
                text = SavedTensors.parse(text).value
            except ValueError as error:
                raise RefusedError(Code.SYNTAX, at, str(error), "name each tensor once") from error
        return Word(text, at)

    def number(self, parts: list[Count]) -> Number:
        return Number(parts[0].value)

    def variable(self, parts: list[Word]) -> Variable:
        return Variable(parts[0].text, parts[0].at)

    def choice(self, parts: list[Expression]) -> Operation:
        return self._operation("?:", self._start, tuple(parts))

    def binary(self, parts: list[Any]) -> Operation:
        left, symbol, right = parts
        return self._operation(symbol.value, self._at(symbol), (left, right))

    def negative(self, parts: list[Expression]) -> Operation:
        return self._operation("-", self._start, tuple(parts))

    def _operation(self, symbol: str, at: Position, operands: tuple[Expression, ...]) -> Operation:
        depth = 1 + max(operand.depth for operand in operands)
        if depth > DEEPEST:
            raise RefusedError(
                Code.TOO_LARGE, at, f"more than {DEEPEST} operations inside each other", "write a shorter expression"
            )
        return Operation(symbol, operands, at, depth)

    def _at(self, token: Token) -> Position:
        first = token.column or 1
        return Position(self._start.line, first, first + len(token))
