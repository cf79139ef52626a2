"""Trip count of a loop: as the compiler states it, or from its counter.

The counter of a ``while`` starts at a constant and is compared with another. It starts at one where the compiler has
peeled the first pass, and grows by more than one where it has unrolled the loop, as it does with chains of matmuls.
"""

import math
import re

from asap.compiler.schedule.hlo import Computation, Instruction, Module

_KNOWN_TRIP_COUNT = re.compile(r'"known_trip_count":\{"n":"(\d+)"\}')
_INDEX = re.compile(r"\bindex=(\d+)")


def trip_count(module: Module, loop: Instruction) -> int | None:
    """Passes through the body of a ``while``; ``None`` where its counter cannot be read."""
    if known := _KNOWN_TRIP_COUNT.search(loop.attributes):
        return int(known.group(1))
    condition, body = module.callee(loop, "condition"), module.callee(loop, "body")
    if condition is None or body is None or not condition.instructions:
        return None
    compare = condition.instructions[-1]
    if "direction=LT" not in compare.attributes or len(compare.operands) != 2:
        return None
    counter, bound = (condition.by_name.get(name) for name in compare.operands)
    place = _INDEX.search(counter.attributes) if counter else None
    if place is None or bound is None:
        return None
    index = int(place.group(1))
    values = _constant(bound), _start(module, loop, index), _increment(body, index)
    if None in values:
        return None
    end, start, increment = (value or 0 for value in values)
    return math.ceil((end - start) / increment) if increment > 0 else None


def _start(module: Module, loop: Instruction, index: int) -> int | None:
    """What the counter is before the loop."""
    caller = next((c for c in module.computations.values() if loop.name in c.by_name), None)
    return _constant(_element(caller, loop.operands[0], index)) if caller and loop.operands else None


def _increment(body: Computation, index: int) -> int | None:
    """What a pass adds to the counter."""
    incremented = _element(body, body.instructions[-1].name, index)
    if incremented is None or incremented.opcode != "add":
        return None
    addends = [_constant(_origin(body, name)) for name in incremented.operands]
    return next((addend for addend in addends if addend is not None), None)


def _element(computation: Computation, name: str, index: int) -> Instruction | None:
    """An element of a tuple that is put together in a computation, where it is made."""
    whole = computation.by_name.get(name)
    if whole is None or whole.opcode != "tuple" or index >= len(whole.operands):
        return None
    return _origin(computation, whole.operands[index])


def _origin(computation: Computation, name: str) -> Instruction | None:
    """What an instruction is a copy of."""
    found = computation.by_name.get(name)
    while found is not None and found.opcode in ("copy", "bitcast") and found.operands:
        found = computation.by_name.get(found.operands[0])
    return found


def _constant(instruction: Instruction | None) -> int | None:
    said = instruction.attributes.strip() if instruction and instruction.opcode == "constant" else ""
    return int(said) if said.lstrip("-").isdigit() else None
