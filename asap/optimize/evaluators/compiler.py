"""Evaluates a configuration with the real TPU compiler: least effort to reject, full effort to time."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from asap.compiler.programs.options import CompileOptions
from asap.compiler.programs.request import Effort
from asap.compiler.verification import Verification
from asap.compiler.verify import verify
from asap.core.errors import PlanError
from asap.core.feedback import Feedback
from asap.core.provenance import Provenance
from asap.core.units import format_bytes, format_percent
from asap.experiments import Experiment
from asap.mapping.language.program import Program
from asap.optimize.codes import Code
from asap.optimize.feedback import feedback
from asap.optimize.outcome import Configuration, Outcome, Status
from asap.optimize.programs import read
from asap.plans import Plan

_EXPOSED = 0.1
"""Share of the step that one collective has to cost alone to be worth a word."""
_RESHARDED = 0.01
"""Share of the step that moves between layouts have to cost."""
_SPARE = 0.25
"""Share of HBM from which on it is said to be to spare, as :data:`asap.proposals.situation.SPARE`."""
_STATUS: dict[str, tuple[Status, Code]] = {
    "does_not_fit": ("rejected", Code.OUT_OF_MEMORY),
    "not_expressible": ("rejected", Code.INVALID),
    "step_failed": ("rejected", Code.INVALID),
    "refused": ("rejected", Code.INVALID),
    "crashed": ("failed", Code.CRASHED),
    "timed_out": ("failed", Code.HANG),
    "out_of_host_memory": ("failed", Code.CRASHED),
}


@dataclass(frozen=True)
class CompilerEvaluator:
    """Compiles the training step of an experiment. Answers are kept by the compiler's cache.

    Args:
        experiment: whose step it is.
        options: whose code is compiled, where, and how long.
        report: called with what is going on.
    """

    experiment: Experiment
    options: CompileOptions
    report: Callable[[str], None] = lambda line: None
    name: str = "compiler"

    def evaluate(self, configuration: Configuration, place: Path) -> Outcome:
        """Compile: with least effort first, which tells in seconds what does not fit."""
        del place
        began = time.monotonic()
        plan, program = read(configuration)
        try:
            found = self._compile(plan, program, "least")
            if found.status == "compiled":
                full = self._compile(plan, program, "full")
                found = full if full.status != "timed_out" else found
        except PlanError as error:
            return Outcome(
                status="rejected", provenance=Provenance.COMPILED, seconds=time.monotonic() - began,
                feedback=(feedback(Code.INVALID, error.message),),
            )  # fmt: skip
        return outcome_of(found, time.monotonic() - began)

    def _compile(self, plan: Plan, program: Program | None, effort: Effort) -> Verification:
        self.report(f"compiling with {effort} effort")
        options = replace(self.options, effort=effort, mapping=program)
        return verify(self.experiment, [plan], options, self.report)[0]


def outcome_of(found: Verification, seconds: float) -> Outcome:
    """What a compilation comes to as an evaluation that took so long."""
    time_ = found.calibrated_step_time or found.step_time
    hbm = found.memory.hbm_peak if found.memory else found.needed_bytes
    common = {"provenance": Provenance.COMPILED, "hbm_bytes": hbm, "seconds": seconds}
    if found.status in _STATUS:
        status, code = _STATUS[found.status]
        return Outcome(status=status, feedback=(feedback(code, found.verdict),), **common)
    if time_ is None:
        reason = "it compiles, but the compiler gave no time for its step"
        return Outcome(status="failed", feedback=(feedback(Code.NO_STEP_TIME, reason, "run it"),), **common)
    return Outcome(status="done", step_time_s=time_.value, feedback=tuple(_advice(found)), **common)


def _advice(found: Verification) -> list[Feedback]:
    """What the compiled step shows: the collective that costs most, and whether it runs alone; HBM that is left."""
    said: list[Feedback] = []
    worst = max(found.collectives, key=lambda row: row.exposed_s or 0.0, default=None)
    simulated = found.step_time.value if found.step_time else 0.0
    if worst is not None and simulated and (worst.exposed_s or 0.0) > _EXPOSED * simulated:
        share = format_percent((worst.exposed_s or 0.0) / simulated, 0)
        where = f"{worst.kind} over {worst.axes}"
        if worst.execution == "synchronous":
            said.append(feedback(Code.SYNCHRONOUS_COLLECTIVE, f"{where} runs alone for {share} of the step"))
        else:
            said.append(feedback(Code.EXPOSED_COLLECTIVE, f"{where} is waited for {share} of the step"))
    for row in found.collectives:
        asked_for = row.kind != "all-to-all" or "expert" in row.axes
        if not asked_for and simulated and (row.exposed_s or 0.0) > _RESHARDED * simulated:
            moved = f"{format_bytes(row.size_bytes)} between layouts along {row.axes}"
            said.append(feedback(Code.RESHARDING, f"the compiler moves {moved}: no split asks for it"))
    peak = found.memory.hbm_peak if found.memory else None
    if peak is not None and peak < (1 - _SPARE) * found.capacity_bytes:
        said.append(feedback(Code.MEMORY_TO_SPARE, f"{format_bytes(found.capacity_bytes - peak)} of HBM are left over"))
    return said
