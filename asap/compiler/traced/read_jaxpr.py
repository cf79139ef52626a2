"""From a jaxpr to operations.

Elementwise work is fused with the operand that is there last, as a compiler fuses. What is sliced, shifted or passed
through a barrier is written first and then read. What is sent lies in one piece, so a part is copied before.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

from asap.compiler.traced.operations import (
    Buffer,
    Draft,
    Operation,
    Send,
    Value,
    bytes_of,
    is_view,
    product_flops,
    sent_by,
    written_in_place,
)
from asap.core.errors import InsufficientEvidenceError
from asap.plans.replica_groups import NamedMesh

_CALLS = ("jit", "closed_call", "remat2", "custom_jvp_call", "custom_vjp_call")
_ON_CHIP = 4
"""Arrays of its size that have to fit on the chip for one to stay there: two operands, a result, the next operand."""


def operations_of(jaxpr: Any, grid: NamedMesh, onchip: float) -> tuple[Operation, ...]:
    """What one device does.

    Args:
        jaxpr: of a program with a ``shard_map``.
        grid: names and lengths of its axes.
        onchip: bytes of the memory on the chip.

    Raises:
        InsufficientEvidenceError: a loop or branch that depends on data, or a collective that is not read.
    """
    return _Reader(grid, onchip).operations(jaxpr)


@dataclass
class _Reader:
    grid: NamedMesh
    onchip: float
    drafts: list[Draft] = field(default_factory=list)
    sent: dict[tuple[Send, Value], Value] = field(default_factory=dict)
    views: Iterator[int] = field(default_factory=lambda: count(1))

    def operations(self, jaxpr: Any) -> tuple[Operation, ...]:
        """Those of a whole program, whose arguments and results lie in HBM."""
        for each in self.results(jaxpr, self.arguments(jaxpr)):
            if each.buffer is not None:
                each.buffer.is_read = each.buffer.in_hbm = True
        return tuple(draft.finished() for draft in self.drafts)

    def arguments(self, jaxpr: Any) -> list[Value]:
        return [Value(Buffer(bytes_of(each), None, in_hbm=True)) for each in jaxpr.invars]

    def results(self, jaxpr: Any, arguments: Sequence[Value]) -> list[Value]:
        """The results of a jaxpr; its operations are added to the drafts."""
        known: dict[Any, Value] = dict(zip(jaxpr.invars, arguments, strict=True))
        known |= {each: self.constant(each) for each in jaxpr.constvars}

        def value(variable: Any) -> Value:
            return self.constant(variable) if hasattr(variable, "val") else known[variable]

        for equation in jaxpr.eqns:
            found = self.equation(equation, [value(each) for each in equation.invars])
            known.update(zip(equation.outvars, found, strict=True))
        return [value(each) for each in jaxpr.outvars]

    def equation(self, equation: Any, operands: list[Value]) -> list[Value]:
        name, parameters = equation.primitive.name, equation.params
        if name == "shard_map":
            return self.results(parameters["jaxpr"], self.arguments(parameters["jaxpr"]))
        if name in _CALLS:
            called = parameters.get("jaxpr") or parameters["call_jaxpr"]
            return self.results(getattr(called, "jaxpr", called), operands)
        if name == "scan":
            return self.loop(equation, operands)
        if name in ("while", "cond"):
            raise InsufficientEvidenceError("what runs, or how often, depends on data", where=name)
        if name == "optimization_barrier":
            barrier = self.new(operands, computes=False)
            return [replace(each, after=barrier) for each in operands]
        if sends := sent_by(equation, self.grid):
            return [self.sent_once(*each) for each in zip(sends, operands, equation.outvars, strict=True)]
        if all(each.buffer is None for each in operands):
            return [Value() for _ in equation.outvars]
        if is_view(equation):
            return [self.view(operands[0], bytes_of(out)) for out in equation.outvars]
        return self.computed(equation, operands)

    def constant(self, variable: Any) -> Value:
        """A single number is part of the program; an array lies in HBM."""
        return Value(Buffer(bytes_of(variable), None, in_hbm=True)) if variable.aval.shape else Value()

    def view(self, operand: Value, size: int) -> Value:
        return operand if size >= operand.size else replace(operand, part=size, view=next(self.views))

    def computed(self, equation: Any, operands: list[Value]) -> list[Value]:
        last = max(operands, key=lambda each: -1 if each.after is None else each.after)
        flops, index = product_flops(equation), last.after
        if flops or index is None or not self.drafts[index].computes or not last.fuses_with(index):
            index = self.new([])
        draft, name = self.drafts[index], equation.primitive.name
        draft.flops.update(flops)
        draft.after |= {each.after for each in operands if each.after not in (None, index)}
        written = written_in_place(equation)
        for place, each in enumerate(operands):
            if not each.fuses_with(index) and not (written and place == 0):
                draft.read(each, bytes_of(equation.outvars[0]) if name == "gather" and place == 0 else None)
        found = [self.buffer(bytes_of(out), index) for out in equation.outvars]
        part = operands[written].size if written is not None and operands[0].buffer is not None else None
        draft.writes |= {each: each.size if part is None else part for each in found}
        return [Value(each, index) for each in found]

    def sent_once(self, send: Send, operand: Value, out: Any) -> Value:
        """What a collective gives; the same array is not sent the same way again."""
        if not send.moves:
            return operand if send.groups else Value()
        if (send, operand) not in self.sent:
            index = self.new([self.in_one_piece(operand, send.operand_size)], computes=False)
            self.drafts[index].send = send
            self.sent[send, operand] = Value(self.buffer(bytes_of(out), index), index)
        return self.sent[send, operand]

    def in_one_piece(self, operand: Value, size: int) -> Value:
        if operand.buffer is None:
            return operand
        operand.buffer.is_read = True
        if operand.buffer.size == size:
            return operand
        index = self.new([operand])
        copy = self.buffer(size, index)
        copy.is_read = True
        self.drafts[index].read(operand)
        self.drafts[index].writes[copy] = size
        return Value(copy, index)

    def loop(self, equation: Any, operands: list[Value]) -> list[Value]:
        index = self.new(operands, computes=False)
        for each in operands:
            if each.buffer is not None:
                each.buffer.is_read = True
        self.drafts[index].body = _Reader(self.grid, self.onchip).operations(equation.params["jaxpr"].jaxpr)
        self.drafts[index].times = equation.params["length"]
        return [Value(self.buffer(bytes_of(out), index), index) for out in equation.outvars]

    def buffer(self, size: int, writer: int) -> Buffer:
        return Buffer(size, writer, in_hbm=size * _ON_CHIP > self.onchip)

    def new(self, operands: Sequence[Value], computes: bool = True) -> int:
        self.drafts.append(Draft({each.after for each in operands if each.after is not None}, computes))
        return len(self.drafts) - 1
