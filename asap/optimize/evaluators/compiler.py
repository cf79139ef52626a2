"""Evaluates configurations with the real TPU compiler: least effort to reject, full effort to time."""

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from asap.compiler.programs.options import LOCAL_ENGINE, CompileLimits, CompileOptions
from asap.compiler.programs.request import Effort
from asap.compiler.schedule.simulator import UNCOUNTED
from asap.compiler.toolchain.compile import max_workers
from asap.compiler.verification import CollectiveRow, Verification
from asap.compiler.verify import verify
from asap.core.errors import PlanError
from asap.core.feedback import Feedback
from asap.core.units import Provenance, format_bytes, format_percent
from asap.optimize.outcome import Code, Configuration, Outcome, Status, feedback
from asap.plans import Plan
from asap.plans.validity import require_valid
from asap.proposals.situation import SPARE
from asap.study.study import Study

_WORTH_TELLING = 0.1
"""Share of the step that one cause has to cost to be worth a word. Judgement: what is printed."""
_RESHARDED = 0.01
"""Share of the step that moves between layouts have to cost. Judgement: what is printed."""
_STATUS: dict[str, tuple[Status, Code]] = {
    "does_not_fit": ("rejected", Code.OUT_OF_MEMORY),
    "timed_out": ("failed", Code.HANG),
    **dict.fromkeys(("not_expressible", "step_failed", "refused"), ("rejected", Code.INVALID)),
    **dict.fromkeys(("crashed", "out_of_host_memory"), ("failed", Code.CRASHED)),
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


ON_RAY = 8
"""Configurations that go to a Ray cluster together, none having learnt from another. Judgement: the time."""


@dataclass(frozen=True)
class CompilerEvaluator:
    """Compiles the training step of a run. Answers are kept by the compiler's cache.

    Args:
        study: of the run.
        options: whose code is compiled, where, and how long.
        report: called with what is going on.
    """

    study: Study
    options: CompileOptions
    report: Callable[[str], None] = lambda line: None

    @property
    def at_once(self) -> int:
        """As many as this machine carries, or a cluster."""
        return max_workers() if self.options.engine == LOCAL_ENGINE else ON_RAY

    def evaluate_all(self, configurations: Sequence[Configuration], seconds: float = math.inf) -> list[Outcome]:
        """Compile them together: with least effort first, which tells sooner what does not fit."""
        began = time.monotonic()
        limits = replace(self.options.limits, until=began + seconds)
        valid, refused = self._read(configurations)
        found = self._compile(valid, "least", limits)
        fitting = {name: valid[name] for name, each in found.items() if each.status == "compiled"}
        timed = self._compile(fitting, "full", limits)
        found |= {name: each for name, each in timed.items() if each.status != "timed_out"}
        each_took = (time.monotonic() - began) / len(configurations)
        outcomes = refused | {name: outcome_of(each, each_took) for name, each in found.items()}
        if not limits.seconds_left:
            outcomes |= {
                name: outcomes[name].model_copy(update={"status": "lost", "feedback": (feedback(Code.BUDGET_SPENT),)})
                for name, each in found.items()
                if _is_unfinished(each)
            }
        return [outcomes[name] for name in configurations]

    def _read(
        self, configurations: Sequence[Configuration]
    ) -> tuple[dict[Configuration, Plan], dict[Configuration, Outcome]]:
        """What the configurations say, and an outcome for each that cannot be compiled."""
        valid, refused = dict[Configuration, Plan](), dict[Configuration, Outcome]()
        for name in configurations:
            try:
                plan = Plan.parse(name)
                require_valid(plan, self.study.constraints)
                valid[name] = plan
            except PlanError as error:
                said = (feedback(Code.INVALID, error.message),)
                refused[name] = Outcome(status="rejected", provenance=Provenance.COMPILED, feedback=said)
        return valid, refused

    def _compile(
        self, asked: Mapping[Configuration, Plan], effort: Effort, limits: CompileLimits
    ) -> dict[Configuration, Verification]:
        """All at once."""
        if not asked:
            return {}
        self.report(f"compiling {len(asked)} with {effort} effort")
        options = replace(self.options, effort=effort, limits=limits)
        verified = verify(self.study.experiment, list(asked.values()), options, self.report)
        return dict(zip(asked, verified, strict=True))


def _is_unfinished(found: Verification) -> bool:
    return found.status == "timed_out" or (found.status == "compiled" and found.effort == "least")
