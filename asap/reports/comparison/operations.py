"""Operations of two profiles, matched: by name and shape, then by the name without its number and shape.

XLA numbers operations anew in every compilation, so ``fusion.12`` of one run may be ``fusion.15`` of another.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from asap.profiles import Operation
from asap.profiles.collectives import base_name

NOISE = 0.03
"""Relative change that counts as none: undisturbed steps vary by as much (asap/diagnosis/facts.py)."""

Change = Literal["faster", "slower", "same", "new", "gone"]
_Key = tuple[str, str | None]


class OperationChange(BaseModel):
    """An operation in both runs, or in one; ``before`` and ``after`` as in :class:`OperationChanges`."""

    model_config = ConfigDict(frozen=True)

    name: str
    renamed: str | None = Field(default=None, description="its name in the second run, where that differs")
    category: str
    shape: str | None
    change: Change
    before: float | None
    after: float | None

    @property
    def difference(self) -> float:
        """What it adds to the step; negative where it became faster."""
        return (self.after or 0.0) - (self.before or 0.0)


class OperationChanges(BaseModel):
    """All operations, the largest difference first."""

    model_config = ConfigDict(frozen=True)

    unit: Literal["s", "fraction"] = Field(description="seconds of a step, or shares of the step or window")
    operations: tuple[OperationChange, ...]


def compare_operations(before: Sequence[Operation], after: Sequence[Operation], in_seconds: bool) -> OperationChanges:
    """Match the operations of two profiles, and say what became of each."""
    pairs, old, new = _matched(before, after, lambda op: (op.name, op.shape))
    more, old, new = _matched(old, new, lambda op: (base_name(op.name), op.shape))
    found = [_changed(one, other, in_seconds) for one, other in [*pairs, *more]]
    found += [_changed(one, None, in_seconds) for one in old] + [_changed(None, other, in_seconds) for other in new]
    ordered = sorted(found, key=lambda change: (-abs(change.difference), change.name))
    return OperationChanges(unit="s" if in_seconds else "fraction", operations=tuple(ordered))


def _matched(
    before: Sequence[Operation], after: Sequence[Operation], key: Callable[[Operation], _Key]
) -> tuple[list[tuple[Operation, Operation]], list[Operation], list[Operation]]:
    """Pairs of the same key, the longest with the longest; then what is left of both."""
    waiting: dict[_Key, list[Operation]] = defaultdict(list)
    for operation in after:
        waiting[key(operation)].append(operation)
    pairs, left = [], []
    for operation in before:
        partners = waiting[key(operation)]
        if partners:
            pairs.append((operation, partners.pop(0)))
        else:
            left.append(operation)
    return pairs, left, [operation for partners in waiting.values() for operation in partners]


def _changed(one: Operation | None, other: Operation | None, in_seconds: bool) -> OperationChange:
    shown = one or other
    assert shown is not None
    before, after = _size(one, in_seconds), _size(other, in_seconds)
    return OperationChange(
        name=shown.name,
        renamed=other.name if one and other and one.name != other.name else None,
        category=shown.category,
        shape=shown.shape,
        change=_judged(before, after),
        before=before,
        after=after,
    )


def _judged(before: float | None, after: float | None) -> Change:
    if before is None or after is None:
        return "new" if before is None else "gone"
    if abs(after - before) <= NOISE * before:
        return "same"
    return "faster" if after < before else "slower"


def _size(operation: Operation | None, in_seconds: bool) -> float | None:
    if operation is None:
        return None
    return operation.time_s if in_seconds else operation.fraction
