"""Conditions of a Python program, as far as what they compare is literal."""

import ast
from collections.abc import Callable
from typing import Any

Value = Callable[[ast.expr], Any]
"""The value of an expression."""
_LITERAL = (str, int, float, bool, type(None))


def truth(node: ast.expr, value: Value) -> bool | None:
    """Whether a condition holds; ``None`` where only a run can tell."""
    match node:
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            held = truth(operand, value)
            return None if held is None else not held
        case ast.BoolOp(op=operator, values=parts):
            return _joined([truth(part, value) for part in parts], isinstance(operator, ast.Or))
        case ast.Compare(left=left, ops=[operator], comparators=[right]):
            return _compared(operator, value(left), value(right))
    found = value(node)
    return bool(found) if isinstance(found, _LITERAL) else None


def _joined(held: list[bool | None], decides: bool) -> bool | None:
    """Of ``or``, which one that holds decides, or of ``and``, which one that does not hold decides."""
    if decides in held:
        return decides
    return None if None in held else not decides


def _compared(operator: ast.cmpop, left: Any, right: Any) -> bool | None:
    if not isinstance(left, _LITERAL):
        return None
    if isinstance(operator, ast.In | ast.NotIn):
        if not (isinstance(right, list) and all(isinstance(item, _LITERAL) for item in right)):
            return None
        return (left in right) is isinstance(operator, ast.In)
    if not isinstance(right, _LITERAL):
        return None
    if isinstance(operator, ast.Eq | ast.Is):
        return left == right
    if isinstance(operator, ast.NotEq | ast.IsNot):
        return left != right
    if not (isinstance(left, int | float) and isinstance(right, int | float)):
        return None
    match operator:
        case ast.Lt():
            return left < right
        case ast.LtE():
            return left <= right
        case ast.Gt():
            return left > right
        case ast.GtE():
            return left >= right
    return None
