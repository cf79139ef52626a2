"""A program as text in its one form: single spaces, comments and order as written, one empty line at most."""

from asap.mapping.language.expression import Expression, Number, Variable
from asap.mapping.language.program import (
    Block,
    Count,
    Decision,
    Degree,
    IndexMap,
    Layers,
    Mesh,
    Order,
    Program,
    Setting,
    Sharding,
    Word,
)

_PRECEDENCE = {"?:": 0, "<": 1, "<=": 1, ">": 1, ">=": 1, "==": 1, "!=": 1, "+": 2, "-": 2, "*": 3, "/": 3, "%": 3}
_NEGATIVE = 4


def format_program(program: Program) -> str:
    """The text of a program; reading it gives the same decisions."""
    lines: list[str] = []
    for line in program.lines:
        text = "" if line.decision is None else format_decision(line.decision)
        comment = f"# {line.comment}" if line.comment else ""
        joined = "  ".join(part for part in (text, comment) if part)
        if joined or (lines and lines[-1]):
            lines.append(joined)
    while lines and not lines[-1]:
        lines.pop()
    return "".join(f"{line}\n" for line in lines)


def format_decision(decision: Decision) -> str:
    """One decision without its comment."""
    if isinstance(decision, Mesh):
        return " ".join(("mesh", *(_degree(degree) for degree in decision.degrees)))
    if isinstance(decision, Order):
        return f"order {format_order(decision)}"
    if isinstance(decision, Setting):
        return f"{decision.keyword} {_value(decision.value)}"
    layers = f" {_layers(decision.layers)}" if decision.layers else ""
    if isinstance(decision, Sharding):
        axes = _list(decision.axes) or "none"
        return f"{decision.keyword} {_list(decision.names)} by {decision.dimension.text} over {axes}{layers}"
    names = f" {_list(decision.names)}" if decision.names else ""
    on = " on" if decision.keyword == "place" else ""
    return f"{decision.keyword}{names}{on} {decision.value.text}{layers}"


def format_expression(expression: Expression) -> str:
    """An expression with no more brackets than it needs."""
    return _expression(expression, 0)


def _expression(expression: Expression, least: int) -> str:
    """The text of an expression, in brackets where it binds less than its surroundings."""
    if isinstance(expression, Number):
        return str(expression.value)
    if isinstance(expression, Variable):
        return expression.name
    first, *rest = expression.operands
    if not rest:
        binds, text = _NEGATIVE, f"-{_expression(first, _NEGATIVE)}"
    elif expression.symbol == "?:":
        binds = 0
        text = f"{_expression(first, 1)} ? {_expression(rest[0], 0)} : {_expression(rest[1], 0)}"
    else:
        binds = _PRECEDENCE[expression.symbol]
        left = binds + 1 if binds == 1 else binds
        text = f"{_expression(first, left)} {expression.symbol} {_expression(rest[0], binds + 1)}"
    return f"({text})" if binds < least else text


def _degree(degree: Degree) -> str:
    return f"{'dcn.' if degree.network == 'dcn' else ''}{degree.axis.text}={degree.degree.value}"


def format_order(order: Order) -> str:
    """What follows the word ``order``."""
    if isinstance(order.by, Block):
        return f"block{_value(order.by.sides)}"
    if isinstance(order.by, IndexMap):
        return f"f({_list(order.by.parameters)}) = {format_expression(order.by.expression)}"
    return order.by.kind


def _layers(layers: Layers) -> str:
    first, last = layers.first.value, layers.last.value
    return f"in layers {first}" if first == last else f"in layers {first}..{last}"


def _value(value: Word | Count | tuple[Count, ...]) -> str:
    if isinstance(value, tuple):
        return f"({', '.join(str(count.value) for count in value)})"
    return value.text if isinstance(value, Word) else str(value.value)


def _list(words: tuple[Word, ...]) -> str:
    return ", ".join(word.text for word in words)
