"""Title and summary of a record, written from its facts."""

from asap.core.provenance import Quantity
from asap.core.text import plain
from asap.core.units import format_rate, format_seconds, significant
from asap.history.changes import axis_changes, mesh_of
from asap.history.record import Outcome
from asap.plans import Plan


def title_of(what: str, before: Plan, after: Plan, others: tuple[str, ...], outcome: Outcome, fitted: bool) -> str:
    """One line: the run, the change and its outcome; ``fitted`` says whether the run before it fitted."""
    ends = {Outcome.IMPROVED: "faster" if fitted else "fits", Outcome.SLOWER: "slower"}
    meshes = mesh_of(before), mesh_of(after)
    change = f"{meshes[0]} → {meshes[1]}" if meshes[0] != meshes[1] else f"{meshes[0]}, {'; '.join(others)}"
    return plain(f"{what}: {change}: {ends.get(outcome, 'out of memory')}", 200)


def summary_of(
    what: str,
    before: Plan,
    after: Plan,
    outcome: Outcome,
    measured: tuple[Quantity | None, Quantity | None],
    speedup: float | None,
    others: tuple[str, ...],
) -> str:
    """A few sentences: how the mesh changed, what that did, and what else changed."""
    moves = "; ".join(axis_changes(before, after)) or "the mesh stayed as it was"
    sentences = [f"{what}: {moves}.", _effect(outcome, measured, speedup)]
    if others:
        sentences.append(f"Changed besides the mesh: {'; '.join(others)}.")
    return " ".join(sentences)


def _effect(outcome: Outcome, measured: tuple[Quantity | None, Quantity | None], speedup: float | None) -> str:
    before, after = measured
    if outcome is Outcome.OUT_OF_MEMORY:
        return "It ran out of memory" + (f"; before, it ran at {_speed(before)}." if before else ".")
    if before is None:
        return "Before it ran out of memory; now it fits" + (f" and runs at {_speed(after)}." if after else ".")
    times = f" ({significant(speedup)}× as fast)" if speedup else ""
    return (
        f"It went from {_speed(before)} to {_speed(after)}{times}." if after else f"It became {outcome.value}{times}."
    )


def _speed(quantity: Quantity | None) -> str:
    if quantity is None:
        return "an unknown speed"
    if quantity.unit == "s":
        return f"{format_seconds(quantity.value)} a step"
    return format_rate(quantity.value, quantity.unit)
