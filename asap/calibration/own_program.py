"""The user's own program, small: measured with few layers, and the whole step worked out from two of those.

What a layer takes and what is fixed come apart by difference. The model supplies only by how much the whole step
differs from a straight line through the two, which is little: what overlaps, and what the host hides.
"""

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import hypot, lcm
from pathlib import Path

from asap.calibration.dataset.runs import PublishedRun
from asap.calibration.dataset.sources import infer_missing_remat
from asap.calibration.fit.predicted_runs import predict_each
from asap.calibration.own_runs import Reading, own_run
from asap.core.errors import InsufficientEvidenceError, UsageError
from asap.core.text import plain
from asap.core.units import format_percent, format_seconds
from asap.experiments import Experiment, ExperimentStore
from asap.experiments.create import Statement, amend
from asap.models.architecture import pattern_length
from asap.optimize.evaluators.run.command import OVERRIDES, Command
from asap.optimize.evaluators.run.evaluator import RunEvaluator, RunLimits
from asap.prediction.uncertainty.calibration import load_calibration
from asap.proposals.proposal import Overrides
from asap.stacks.launchers import Stack, stack_of
from asap.stacks.registry import contracts
from asap.study.open_study import open_study
from asap.study.study import Study

LAYERS = "{layers}"
LARGEST_ERROR = 0.1
"""Relative standard error of the whole step of two short runs that tell too little. Judgement: which are refused."""
_STARTS = (
    ("SLURM", "sbatch --nodes={nodes} --gpus-per-node={gpus} --wrap='srun bash own.sh'"),
    ("Ray", "ray job submit --working-dir . -- bash own.sh"),
    ("Kubernetes", "kubectl cp own.sh POD:own.sh && kubectl exec POD -- bash own.sh"),
)


@dataclass(frozen=True)
class Depth:
    """A number of layers that was measured: seconds of a step, and their standard error."""

    layers: int
    seconds: float
    error: float = 0.0


@dataclass(frozen=True)
class OwnProgram:
    """A run on record whose program is measured with few layers.

    Args:
        run: with its plan, model, batch and hardware; its step time is not known.
        stack: of its launcher.
    """

    run: PublishedRun
    stack: Stack | None

    @classmethod
    def of(cls, study: Study) -> "OwnProgram":
        """Of an experiment.

        Raises:
            InsufficientEvidenceError: plan, model, hardware or batch are not known, or the model is too shallow.
        """
        experiment, plan = study.experiment, study.plan
        if plan is None:
            raise InsufficientEvidenceError("its plan is not known", where=experiment.id)
        found = own_run(experiment.id, experiment.model, experiment.workload, study.slice, plan, 1.0)
        if isinstance(found, str):
            raise InsufficientEvidenceError(found, where=experiment.id)
        program = cls(infer_missing_remat([found])[0], stack_of(experiment.workload.framework))
        if program.depths[1] >= (found.architecture.layers or 0):
            hint = "measure the whole step: `asap experiments add … --step-time`"
            raise InsufficientEvidenceError("has too few layers to leave any out", where=experiment.id, hint=hint)
        return program

    @property
    def depths(self) -> tuple[int, int]:
        """Two numbers of layers: whole patterns of layers on each pipeline stage, with the dense layers that lead."""
        plan, model = self.run.plan, self.run.architecture
        unit = lcm(plan.degree("stage") * plan.pipeline_repeats, pattern_length(model))
        leading = -(-model.leading_dense_layers // unit) * unit
        step = max(unit, 2)
        return leading + step, leading + 2 * step

    def command(self, start: str, layers: int) -> tuple[str, Overrides]:
        """The launcher's own command with so many layers: with a place for the launcher's words, and these.

        Raises:
            UsageError: the command has no place for the layers, and the launcher no words for them.
        """
        if LAYERS in start:
            return f"{start.replace(LAYERS, str(layers))} # {OVERRIDES}", Overrides()
        known = contracts()[self.stack].depth if self.stack else ""
        if self.stack is None or not known:
            hint = "'./train.sh --layers {layers}'"
            reason = "does not say where the number of layers goes, and its launcher has no option for it"
            raise UsageError(reason, where="--command", hint=hint)
        placed = start if OVERRIDES in start else f"{start} {OVERRIDES}"
        return placed, Overrides(stack=self.stack, text=known.format(layers=layers))

    def script(self, start: str) -> str:
        """For ``bash``: the command with few layers, twice, each with a log of its own."""
        commands = [self.command(start, layers) for layers in self.depths]
        lines = [text.replace(OVERRIDES, said.text).removesuffix(" # ") for text, said in commands]
        logged = [f"{line} > own-{layers}.log 2>&1" for line, layers in zip(lines, self.depths, strict=True)]
        return "\n".join(("#!/bin/bash", "set -e", *logged))

    def starts(self) -> tuple[str, ...]:
        """How a cluster starts the script, by scheduler, and how its logs are read afterwards."""
        each = min(self.run.hardware.devices_per_slice, 8)
        where = {"nodes": -(-self.run.hardware.devices // each), "gpus": each}
        logs = " ".join(f"--log own-{layers}.log" for layers in self.depths)
        ways = (f"{name}: {start.format(**where)}" for name, start in _STARTS)
        return (*ways, f"then: `asap accuracy calibrate --own {shlex.quote(self.run.id)} {logs}`")

    def reading(self, measured: Sequence[Depth]) -> Reading:
        """The whole step as an own run.

        Raises:
            InsufficientEvidenceError: the two depths do not tell a layer's time well enough.
        """
        small, large = sorted(measured, key=lambda depth: depth.layers)
        whole = self.run.architecture.layers or 0
        between = large.layers - small.layers
        further = (whole - small.layers) / between if between else 0.0
        layer = (large.seconds - small.seconds) / max(between, 1)
        line = self._line(small.seconds, large.seconds, further)
        error = hypot((1 - further) * small.error, further * large.error) / line if line > 0 else 1.0
        if layer <= 0 or error > LARGEST_ERROR:
            times = " and ".join(f"{depth.layers} layers {format_seconds(depth.seconds)}" for depth in (small, large))
            reason = f"{times} do not tell what a layer takes"
            raise InsufficientEvidenceError(reason, where=self.run.id, hint="measure more steps: --steps")
        first, second, full = self.predicted(small.layers, large.layers, whole)
        seconds = line * full / self._line(first, second, further)
        fixed = small.seconds - small.layers * layer
        how = (
            f"{small.layers} layers {format_seconds(small.seconds)}, {large.layers} layers"
            f" {format_seconds(large.seconds)}: {format_seconds(layer)} a layer,"
            f" {format_seconds(max(fixed, 0.0))} fixed, known to {format_percent(error)}"
        )
        return Reading(f"own program {self.run.id}", (replace(self.run, step_time=seconds),), how=how)

    def _line(self, small: float, large: float, further: float) -> float:
        return small + further * (large - small)

    def predicted(self, *layers: int) -> tuple[float, ...]:
        """Seconds of a step with so many layers, by the model without own runs."""
        model = self.run.architecture
        runs = [replace(self.run, architecture=model.model_copy(update={"layers": count})) for count in layers]
        return tuple(predict_each(runs, [load_calibration().full] * len(runs)).likeliest.tolist())


def run_depths(
    program: OwnProgram, start: str, folder: Path, session: str, limits: RunLimits, report: Callable[[str], None]
) -> list[Depth]:
    """Start the user's command with few layers, one depth after the other.

    Raises:
        InsufficientEvidenceError: a run took no steps that can be measured.
    """
    found = []
    tokens = program.run.workload.tokens
    for layers in program.depths:
        report(f"measuring {layers} layers")
        place = folder / f"layers-{layers}"
        place.mkdir(parents=True, exist_ok=True)
        command, said = program.command(start, layers)
        evaluator = RunEvaluator(
            command=Command(command), session=session, overrides=lambda _, said=said: said, limits=limits,
            tokens=tokens / program.run.hardware.devices if tokens else None, folder=Path.cwd(), report=report,
        )  # fmt: skip
        outcome = evaluator.evaluate(str(program.run.plan), place)
        if outcome.step_time_s is None:
            why = "; ".join(said.explanation for said in outcome.feedback) or outcome.status
            raise InsufficientEvidenceError(f"{layers} layers: {plain(why, 200)}", where=program.run.id)
        found.append(Depth(layers, outcome.step_time_s, outcome.standard_error_s or 0.0))
    return found


def depths_of_logs(program: OwnProgram, logs: Sequence[Path], experiment: Experiment) -> list[Depth]:
    """What logs of the program with few layers measured.

    Raises:
        UsageError: not two logs, or of another model.
        InsufficientEvidenceError: a log has no step time or does not say its layers.
    """
    if len(logs) != 2:
        raise UsageError("takes two logs, of two numbers of layers", where="--log", hint="--log A --log B")
    hardware, found = experiment.hardware.name, []
    for path in logs:
        study = open_study(str(path), ExperimentStore(), lambda record: amend(record, Statement(hardware=hardware)))
        model, profile = study.experiment.model, study.profile
        if model is None or model.layers is None or profile is None or not profile.kpis.step_time_s:
            raise InsufficientEvidenceError("does not say its layers and what a step takes", where=str(path))
        if (model.d_model, model.heads) != (program.run.architecture.d_model, program.run.architecture.heads):
            raise UsageError(f"is of another model than {program.run.id}", where=str(path))
        found.append(Depth(model.layers, profile.kpis.step_time_s))
    if found[0].layers == found[1].layers:
        raise UsageError("both logs have the same number of layers", where="--log")
    return found
