"""Where a compiled program and our prediction part, in sentences that name the size of each difference."""

from collections import defaultdict

from asap.compiler.verdict import Verification
from asap.core.units import format_bytes, format_percent, format_seconds
from asap.prediction.prediction import Prediction

_WORTH = 0.01
"""Differences below this share of the step are not worth a sentence."""


def differences(found: Verification, expected: Prediction) -> tuple[str, ...]:
    """Sentences on step time, its parts (largest first) and memory."""
    sentences = []
    if found.step_time and expected.step_time:
        compiled, predicted = found.step_time.value, expected.step_time.value
        change = format_percent(compiled / predicted - 1, 0)
        sign = "+" if compiled >= predicted else ""
        sentences.append(
            f"step time: {format_seconds(compiled)} compiled, {format_seconds(predicted)} predicted ({sign}{change})"
        )
        sentences += _parts(found, expected, _WORTH * compiled)
    if found.memory and found.memory.hbm_peak and expected.memory:
        held, foreseen = format_bytes(found.memory.hbm_peak), format_bytes(expected.memory.total.value)
        sentences.append(f"HBM: {held} compiled, {foreseen} predicted")
    if found.fits is not None and expected.memory and found.fits != expected.memory.fits:
        told = "would fit" if expected.memory.fits else "would not fit"
        sentences.append(f"our prediction said that it {told}; the compiler decides")
    return tuple(sentences)


def _parts(found: Verification, expected: Prediction, worth: float) -> list[str]:
    compiled, predicted = _compiled(found), _predicted(expected)
    gaps = {name: compiled.get(name, 0.0) - predicted.get(name, 0.0) for name in {*compiled, *predicted}}
    ordered = sorted((name for name, gap in gaps.items() if abs(gap) >= worth), key=lambda name: -abs(gaps[name]))
    return [
        f"{name}: {format_seconds(compiled.get(name, 0.0))} compiled,"
        f" {format_seconds(predicted.get(name, 0.0))} predicted{_reason(name, compiled, predicted)}"
        for name in ordered
    ]


def _compiled(found: Verification) -> dict[str, float]:
    parts: dict[str, float] = defaultdict(float)
    for row in found.compute:
        parts["compute and memory traffic"] += row.seconds
    for row in found.collectives:
        parts[f"exposed collectives along {_chief(row.axes)}"] += row.exposed_s or 0.0
    return parts


def _chief(axes: str) -> str:
    """The axis that our model books a transfer under: parameters spread over data+seq+expert count as data."""
    return axes.removesuffix(" (part)").partition("+")[0]


def _predicted(expected: Prediction) -> dict[str, float]:
    """Our parts under the same names; what the schedule of one device cannot show keeps its own."""
    parts: dict[str, float] = defaultdict(float)
    for part in expected.parts:
        if part.axis is not None:
            parts[f"exposed collectives along {part.axis}"] += part.exposed_s
        elif part.name in ("compute", "hbm", "optimizer"):
            parts["compute and memory traffic"] += part.exposed_s
        else:
            parts[part.name] += part.exposed_s
    return parts


def _reason(name: str, compiled: dict[str, float], predicted: dict[str, float]) -> str:
    if name not in predicted:
        return " (our model does not know of them)"
    if name not in compiled:
        return (
            " (not in the schedule of one device)" if not name.startswith("exposed") else " (the compiler emits none)"
        )
    return ""
