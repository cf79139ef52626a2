"""A traced run and the runs that are asked about: model, workload, hardware, plan and schedule."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from asap.core.errors import InsufficientEvidenceError, PlanError, UsageError
from asap.core.text import plain
from asap.hardware import Slice, resolve_hardware
from asap.hardware.chip import Chip, Network, Scaleup
from asap.models import Architecture, Workload
from asap.plans import Plan
from asap.plans.axes import Axis
from asap.prediction.from_trace.pipeline import Pipeline, Schedule
from asap.prediction.step_model.encoding import require
from asap.study.study import Study

_FLOPS, _BANDWIDTH = 2.5e10, 2e9
"""Of an eighth of two cores of a server: the products of small decoders in fp32 by YNN, copies of 128 MiB."""
_NO_LATENCY = 1e-9
"""Seconds. A virtual device that waits for others takes nothing from the cores."""
_SOURCE = "rounded from what XLA (products) and numpy (copies) reach on two cores of a server"
_FIGURES = "peak_flops", "matmul_tile", "hbm_bytes", "hbm_bandwidth", "onchip_bytes", "scaleup", "network"
VIRTUAL_DEVICE = Chip(
    name="cpu", title="virtual CPU device", kind="gpu", peak_flops={"fp32": _FLOPS, "bf16": _FLOPS}, matmul_tile=8,
    hbm_bytes=2**34, hbm_bandwidth=_BANDWIDTH, onchip_bytes=2**20,
    scaleup=Scaleup(domain=2**20, bandwidth=_BANDWIDTH / 2, latency=_NO_LATENCY),
    network=Network(bandwidth=_BANDWIDTH / 2, latency=_NO_LATENCY),
    sources=dict.fromkeys(_FIGURES, _SOURCE),
)  # fmt: skip
"""One of several that share two cores (``xla_force_host_platform_device_count``)."""


def virtual_devices(count: int) -> Slice:
    """So many virtual devices of one host."""
    return Slice(VIRTUAL_DEVICE, count)


@dataclass(frozen=True)
class Run:
    """Everything that decides the time of a step."""

    architecture: Architecture
    workload: Workload
    hardware: Slice
    plan: Plan
    schedule: Schedule = Schedule.ONE_F_ONE_B

    @classmethod
    def of(cls, study: Study, plan: Plan | None = None, hardware: Slice | None = None) -> "Run":
        """The run of a study; ``plan`` and ``hardware`` replace those on record.

        Raises:
            InsufficientEvidenceError: the model, the batch, the hardware or the plan is not known.
        """
        where = study.experiment.id
        architecture = require(study.experiment.model, study.experiment.workload)
        plan, hardware = plan or study.plan, hardware or study.slice
        if hardware is None or plan is None:
            what = "the hardware" if hardware is None else "the plan"
            raise InsufficientEvidenceError(f"{what} of the traced run is not known", where=where)
        schedule = Schedule.INTERLEAVED if plan.pipeline_repeats > 1 else Schedule.ONE_F_ONE_B
        return cls(architecture, study.experiment.workload, hardware, plan, schedule)

    @property
    def pipeline(self) -> Pipeline:
        """Its stages and microbatches.

        Raises:
            PlanError: the schedule needs another number of stages.
        """
        stages = self.plan.degree("stage")
        if self.schedule is Schedule.DUALPIPE and stages > 1 and stages % 2:
            raise PlanError(f"dualpipe needs an even number of stages, and this plan has {stages}")
        return Pipeline(stages, self.plan.microbatches or 1, self.schedule, self.plan.pipeline_repeats)


def is_setting(text: str) -> bool:
    """Whether a change concerns the run, and not its graph alone."""
    return _split(text)[0] in ("plan", *_COUNTS, "schedule", "chip", "ranks")


def chip_asked(text: str) -> str:
    """The chip that a change asks about; empty if it asks about something else."""
    name, value = _split(text)
    return value if name == "chip" else ""


def changed_run(run: Run, settings: list[str]) -> Run:
    """The run with other settings, one after the other.

    Raises:
        UsageError: a setting is not one.
        PlanError, ConfigError, NotFoundError: its value is not possible.
    """
    for text in settings:
        name, value = _split(text)
        if name == "plan":
            run = _planned(run, Plan.parse(value).completed_by(run.plan))
        elif name in _COUNTS:
            run = _counted(run, name, _count(text, value))
        elif name == "schedule":
            run = _scheduled(run, text, value)
        elif name == "chip":
            if run.hardware.chip is VIRTUAL_DEVICE:
                raise UsageError("a trace of a CPU does not tell what another chip takes", where=plain(text, 80))
            run = replace(run, hardware=resolve_hardware(value, devices=run.hardware.devices).slice)
        else:
            run = _ranked(run, text, _count(text, value))
    return run


def _split(text: str) -> tuple[str, str]:
    """``plan:data=8`` and ``layers=48`` in name and value."""
    name, *value = re.split("[:=]", text.strip(), maxsplit=1)
    return name, value[0] if value else ""


_COUNTS = ("layers", "hidden", "sequence", "batch", "microbatches")


def _counted(run: Run, name: str, count: int) -> Run:
    model, work = run.architecture, run.workload
    if name == "layers":
        return replace(run, architecture=model.model_copy(update={"layers": count}))
    if name == "hidden":
        return replace(run, architecture=_widened(model, count))
    if name == "microbatches":
        return replace(run, plan=run.plan.model_copy(update={"microbatches": count}))
    field = "sequence_length" if name == "sequence" else "global_batch"
    return replace(run, workload=work.model_copy(update={field: count}))


def _widened(model: Architecture, width: int) -> Architecture:
    """MLP and heads keep their proportion to the residual stream, and the heads their number."""
    ratio = width / (model.d_model or width)
    scaled = {name: getattr(model, name) for name in ("d_ff", "expert_d_ff", "head_dim")}
    update = {name: max(round(value * ratio), 1) for name, value in scaled.items() if value}
    return model.model_copy(update={"d_model": width, **update})


def _scheduled(run: Run, text: str, value: str) -> Run:
    name, _, repeats = value.partition(":")
    if name not in set(Schedule) or bool(repeats) != (name == Schedule.INTERLEAVED):
        names = "gpipe, 1f1b, interleaved:V, zero-bubble and dualpipe"
        raise UsageError(f"is not a schedule; known are {names}", where=plain(text, 80))
    count = _count(text, repeats) if repeats else 1
    return replace(run, schedule=Schedule(name), plan=run.plan.model_copy(update={"pipeline_repeats": count}))


def _ranked(run: Run, text: str, count: int) -> Run:
    axis: Axis = "data" if run.plan.degree("data") > 1 else "replica"
    rest = run.plan.devices // getattr(run.plan.ici, axis)
    if count % rest:
        raise PlanError(f"{count} devices are not a multiple of {rest}, the other axes", where=plain(text, 80))
    return _planned(run, run.plan.with_ici(**{axis: count // rest}))


def _planned(run: Run, chosen: Plan) -> Run:
    hardware = run.hardware
    if chosen.devices == hardware.devices:
        return replace(run, plan=chosen)
    if hardware.chip is VIRTUAL_DEVICE:
        return replace(run, plan=chosen, hardware=virtual_devices(chosen.devices))
    return replace(run, plan=chosen, hardware=resolve_hardware(hardware.chip.name, devices=chosen.devices).slice)


def _count(text: str, value: str) -> int:
    if not value.isdigit() or not 0 < int(value) < 10**9:
        raise UsageError("needs a whole number above zero", where=plain(text, 80))
    return int(value)


INNERMOST_FIRST: tuple[Axis, ...] = ("model", "seq", "expert", "data", "replica", "stage")


def axes_of(ranks: Sequence[int], plan: Plan) -> tuple[Axis, ...]:
    """The axes that a group of ranks lies along; none if it fits no neighbouring ones."""
    if len(ranks) < 2:
        return ()
    stride = 1
    used: list[Axis] = [axis for axis in INNERMOST_FIRST if plan.degree(axis) > 1]
    for first, axis in enumerate(used):
        size = 1
        for last, each in enumerate(used[first:], first + 1):
            size *= plan.degree(each)
            if list(ranks) == list(range(ranks[0], ranks[0] + size * stride, stride)):
                return tuple(used[first:last])
        stride *= plan.degree(axis)
    return ()
