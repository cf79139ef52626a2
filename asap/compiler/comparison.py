"""Where a compiled program differs from our prediction, one sentence for each difference."""

from collections import defaultdict

from asap.compiler.verification import Verification
from asap.core.units import format_bytes, format_percent, format_seconds
from asap.prediction.prediction import Prediction

_SMALLEST = 0.01
"""Smaller differences, as shares of the step, are left out."""


def differences_from_prediction(found: Verification, expected: Prediction) -> tuple[str, ...]:
    """Sentences on step time, its parts (largest first) and memory."""
    sentences = []
    if found.step_time and expected.step_time:
        compiled, predicted = found.step_time.value, expected.step_time.value
        change = format_percent(compiled / predicted - 1, 0)
        sign = "+" if compiled >= predicted else ""
        sentences.append(
            f"step time: {format_seconds(compiled)} compiled, {format_seconds(predicted)} predicted ({sign}{change})"
        )
        if expected.parts:
            sentences += _part_differences(found, expected, _SMALLEST * compiled)
    if found.memory and found.memory.hbm_peak and expected.memory:
        compiled_size, predicted_size = format_bytes(found.memory.hbm_peak), format_bytes(expected.memory.total.value)
        sentences.append(f"HBM: {compiled_size} compiled, {predicted_size} predicted")
    if found.fits is not None and expected.memory and found.fits != expected.memory.fits:
        expectation = {"fits": "would fit", "may not fit": "may not fit", "does not fit": "would not fit"}[
            expected.memory.verdict
        ]
        sentences.append(f"our prediction was that it {expectation}; the compiler is right")
    return tuple(sentences)


def _part_differences(found: Verification, expected: Prediction, smallest: float) -> list[str]:
    compiled, predicted = _compiled_parts(found), _predicted_parts(expected)
    gaps = {name: compiled.get(name, 0.0) - predicted.get(name, 0.0) for name in {*compiled, *predicted}}
    ordered = sorted((name for name, gap in gaps.items() if abs(gap) >= smallest), key=lambda name: -abs(gaps[name]))
    return [
        f"{name}: {format_seconds(compiled.get(name, 0.0))} compiled,"
        f" {format_seconds(predicted.get(name, 0.0))} predicted{_reason(name, compiled, predicted)}"
        for name in ordered
    ]


def _compiled_parts(found: Verification) -> dict[str, float]:
    parts: dict[str, float] = defaultdict(float)
    for row in found.compute:
        parts["compute and memory traffic"] += row.seconds
    for row in found.collectives:
        parts[f"exposed collectives along {_first_axis(row.axes)}"] += row.exposed_s or 0.0
    return parts


def _first_axis(axes: str) -> str:
    """The axis to which our model attributes a transfer: parameters sharded over data+seq+expert count as data."""
    return axes.removesuffix(" (part)").partition("+")[0]


def _predicted_parts(expected: Prediction) -> dict[str, float]:
    """The parts of the prediction under the same names; those that no schedule of one device shows keep theirs."""
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
        return " (not in our model)"
    if name not in compiled:
        return (
            " (not in the schedule of one device)" if not name.startswith("exposed") else " (the compiler emits none)"
        )
    return ""
