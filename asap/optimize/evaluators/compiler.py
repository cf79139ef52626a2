"""Evaluates configurations with the real TPU compiler: least effort to reject, full effort to time."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from asap.compiler.programs.options import LOCAL_ENGINE, CompileLimits, CompileOptions
from asap.compiler.programs.request import Effort
from asap.compiler.toolchain.compile import max_workers
from asap.compiler.verification import Verification
from asap.compiler.verify import verify
from asap.core.errors import PlanError
from asap.core.provenance import Provenance
from asap.mapping.language.program import Program
from asap.optimize.codes import Code
from asap.optimize.evaluators.compiled import outcome_of
from asap.optimize.feedback import feedback
from asap.optimize.outcome import Configuration, Outcome
from asap.optimize.programs import read
from asap.plans import Plan
from asap.plans.validity import require_valid
from asap.study.study import Study

ON_RAY = 8
"""Configurations that go to a Ray cluster together: more would be proposed without having learnt from each other."""

Meaning = tuple[Plan, Program | None]


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
    name: str = "compiler"

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
            outcomes |= {name: _cut_off(outcomes[name]) for name, each in found.items() if _is_unfinished(each)}
        return [outcomes[name] for name in configurations]

    def _read(
        self, configurations: Sequence[Configuration]
    ) -> tuple[dict[Configuration, Meaning], dict[Configuration, Outcome]]:
        """What the configurations say, and an outcome for each that cannot be compiled."""
        valid, refused = dict[Configuration, Meaning](), dict[Configuration, Outcome]()
        for name in configurations:
            try:
                plan, program = read(name)
                require_valid(plan, self.study.constraints)
                valid[name] = plan, program
            except PlanError as error:
                said = (feedback(Code.INVALID, error.message),)
                refused[name] = Outcome(status="rejected", provenance=Provenance.COMPILED, feedback=said)
        return valid, refused

    def _compile(
        self, asked: Mapping[Configuration, Meaning], effort: Effort, limits: CompileLimits
    ) -> dict[Configuration, Verification]:
        """Plans all at once, and each program on its own."""
        found: dict[Configuration, Verification] = {}
        for mapping in dict.fromkeys(program for _, program in asked.values()):
            plans = {name: plan for name, (plan, program) in asked.items() if program == mapping}
            self.report(f"compiling {len(plans)} with {effort} effort")
            options = replace(self.options, effort=effort, limits=limits, mapping=mapping)
            verified = verify(self.study.experiment, list(plans.values()), options, self.report)
            found |= dict(zip(plans, verified, strict=True))
        return found


def _is_unfinished(found: Verification) -> bool:
    return found.status == "timed_out" or (found.status == "compiled" and found.effort == "least")


def _cut_off(outcome: Outcome) -> Outcome:
    return outcome.model_copy(update={"status": "lost", "feedback": (feedback(Code.BUDGET_SPENT),)})
