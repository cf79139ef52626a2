"""Evaluates mapping programs of distributed algorithms: right on virtual devices, then compiled. Modelled time."""

import math
import time
from dataclasses import dataclass
from pathlib import Path

from asap.compiler.algorithms.distributed import Problem
from asap.compiler.mapped.judge import judge
from asap.core.units import Provenance
from asap.hardware import Slice
from asap.optimize.outcome import Configuration, Outcome


@dataclass(frozen=True)
class MappingEvaluator:
    """Judges programs for one slice; ``problem`` are the sizes to compile for, those of the benchmark by default."""

    hardware: Slice
    problem: Problem | None = None

    @property
    def name(self) -> str:
        """What evaluates."""
        return "compiler"

    def evaluate(self, configuration: Configuration, place: Path, seconds: float = math.inf) -> Outcome:
        """What comes of a program. The compiler's cache keeps what it answered, so nothing is kept at ``place``.

        A program takes seconds, and their number is the budget, so ``seconds`` is not looked at.
        """
        del place, seconds
        begin = time.monotonic()
        judged = judge(configuration, self.hardware, self.problem)
        return Outcome(
            status=judged.status,
            step_time_s=judged.seconds,
            hbm_bytes=judged.hbm_bytes,
            provenance=Provenance.COMPILED,
            feedback=judged.feedback,
            seconds=time.monotonic() - begin,
        )
