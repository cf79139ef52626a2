"""How a wrong result differs from the right one: the pattern often names the mistake."""

from dataclasses import dataclass

import numpy as np

from asap.core.units import format_percent

TOLERANCE = 1e-4
"""Of the largest element of the right result; the programs agree to 1e-6 in float32."""


@dataclass(frozen=True)
class Difference:
    """The largest error over the largest element, and its pattern; empty if the result is right."""

    error: float
    pattern: str


def difference(found: np.ndarray, right: np.ndarray) -> Difference:
    """Compare a result with that of the plain program."""
    if found.shape != right.shape:
        return Difference(float("inf"), f"the shape is {found.shape} instead of {right.shape}")
    scale = float(np.abs(right).max()) or 1.0
    wrong = ~(np.abs(found - right) <= TOLERANCE * scale)
    if not wrong.any():
        return Difference(float(np.abs(found - right).max()) / scale, "")
    if not np.isfinite(found).all():
        return Difference(float("inf"), f"{int((~np.isfinite(found)).sum()):,} elements are not finite")
    return Difference(float(np.abs(found - right).max()) / scale, _pattern(found, right, wrong, TOLERANCE * scale))


def _pattern(found: np.ndarray, right: np.ndarray, wrong: np.ndarray, near: float) -> str:
    for axis, name in enumerate(("rows", "columns")[: found.ndim]):
        one, other = np.moveaxis(found, axis, 0), np.moveaxis(right, axis, 0)
        order = [np.flatnonzero(np.abs(other - line).reshape(len(other), -1).max(1) <= near) for line in one]
        if all(len(places) for places in order):
            moved = sum(index not in places for index, places in enumerate(order))
            return f"{moved} of {len(one)} {name} are right and in the wrong place"
    factor = float((found * right).sum() / (right * right).sum())
    if np.abs(found - factor * right).max() <= 10 * near:
        return f"every element is {factor:.3g} times too large"
    if not _inside(wrong).any():
        return "only the rim is wrong"
    lines = [int(wrong.any(axis=tuple(a for a in range(wrong.ndim) if a != axis)).sum()) for axis in range(wrong.ndim)]
    return f"{format_percent(wrong.mean(), 0)} of the elements are wrong, in {lines[0]} of {len(wrong)} rows"


def _inside(wrong: np.ndarray) -> np.ndarray:
    """Without an eighth at each end of the first two dimensions."""
    cut = tuple(slice(length // 8, length - length // 8) for length in wrong.shape[:2])
    return wrong[cut]
