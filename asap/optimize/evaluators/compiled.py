"""What a compiled step says as an outcome: its time, its HBM, and what its schedule could do better."""

from collections.abc import Iterator

from asap.compiler.schedule.simulator import UNCOUNTED
from asap.compiler.verification import CollectiveRow, Verification
from asap.core.feedback import Feedback
from asap.core.provenance import Provenance
from asap.core.units import format_bytes, format_percent
from asap.optimize.codes import Code
from asap.optimize.feedback import feedback
from asap.optimize.outcome import Outcome, Status
from asap.proposals.situation import SPARE

_WORTH_TELLING = 0.1
"""Share of the step that one cause has to cost to be worth a word."""
_RESHARDED = 0.01
"""Share of the step that moves between layouts have to cost."""
_STATUS: dict[str, tuple[Status, Code]] = {
    "does_not_fit": ("rejected", Code.OUT_OF_MEMORY),
    "not_expressible": ("rejected", Code.INVALID),
    "step_failed": ("rejected", Code.INVALID),
    "refused": ("rejected", Code.INVALID),
    "crashed": ("failed", Code.CRASHED),
    "timed_out": ("failed", Code.HANG),
    "out_of_host_memory": ("failed", Code.CRASHED),
}


def outcome_of(found: Verification, seconds: float) -> Outcome:
    """The outcome of a compilation that took so many seconds."""
    step = found.calibrated_step_time or found.step_time
    hbm = found.memory.hbm_peak if found.memory else found.needed_bytes
    common = {"provenance": Provenance.COMPILED, "hbm_bytes": hbm, "seconds": seconds}
    if found.status in _STATUS:
        status, code = _STATUS[found.status]
        return Outcome(status=status, feedback=(feedback(code, found.verdict),), **common)
    uncounted = next((note for note in found.notes if note.endswith(UNCOUNTED)), None)
    if step is None or uncounted:
        reason = f"it compiles, but its step has no time: {uncounted or 'the compiler gave none'}"
        return Outcome(status="failed", feedback=(feedback(Code.NO_STEP_TIME, reason, "run it"),), **common)
    reduced = (feedback(Code.REDUCED_EFFORT),) if found.effort == "reduced" else ()
    said = (*reduced, *_collectives(found), *_copies(found), *_memory(found))
    return Outcome(status="done", step_time_s=step.value, feedback=said, **common)


def _collectives(found: Verification) -> Iterator[Feedback]:
    """The collective that is waited for longest, and data moving between layouts that no axis asks for."""
    worst = max(found.collectives, key=_exposed, default=None)
    if worst is not None and (share := _share(found, _exposed(worst))) > _WORTH_TELLING:
        where = f"{worst.kind} over {worst.axes}"
        if worst.execution == "synchronous":
            said = f"{where} runs alone for {format_percent(share, 0)} of the step"
            yield feedback(Code.SYNCHRONOUS_COLLECTIVE, said, axis=worst.axes)
        else:
            said = f"{where} is waited for {format_percent(share, 0)} of the step"
            yield feedback(Code.EXPOSED_COLLECTIVE, said, axis=worst.axes)
    for row in found.collectives:
        unasked = row.kind == "all-to-all" and "expert" not in row.axes
        if unasked and (share := _share(found, _exposed(row))) > _RESHARDED:
            moved = f"{format_bytes(row.size_bytes)} between layouts along {row.axes}: no split asks for it"
            yield feedback(Code.RESHARDING, f"the compiler moves {moved}; {format_percent(share)} of the step")


def _copies(found: Verification) -> Iterator[Feedback]:
    moved = sum(row.seconds for row in found.compute if row.category == "data movement")
    if (share := _share(found, moved)) > _WORTH_TELLING:
        yield feedback(Code.LAYOUT_COPY, f"{format_percent(share, 0)} of the step only moves data within the device")


def _memory(found: Verification) -> Iterator[Feedback]:
    peak = found.memory.hbm_peak if found.memory else None
    if peak is not None and peak < (1 - SPARE) * found.capacity_bytes:
        yield feedback(Code.MEMORY_TO_SPARE, f"{format_bytes(found.capacity_bytes - peak)} of HBM are left over")


def _exposed(row: CollectiveRow) -> float:
    return row.exposed_s or 0.0


def _share(found: Verification, seconds: float) -> float:
    return seconds / found.step_time.value if found.step_time else 0.0
