"""Other readings of a run: what it may have been instead of what is on record, so that the model meets the measurement.

A reading changes one input of the model: the rate of the network, the speed of one device, the sequence, the batch, the
precision, a kernel, recomputation. Each has variants, from little to much; the model says what each would take.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from asap.core.errors import AsapError
from asap.experiments.remarks import contradicted_causes, unmodelled
from asap.flags.review import causes_set
from asap.hardware import Chip, Slice
from asap.models import Architecture, Workload
from asap.models.workload import FULL_PRECISION
from asap.plans import Plan, Remat
from asap.plans.axes import Axis
from asap.prediction.prediction import OPTIMIZER_ON_CPU, Prediction
from asap.prediction.step_model.encoding import step_inputs
from asap.prediction.step_model.groups import attention_class, framework_class, precision_class
from asap.prediction.step_model.physics import StepBounds, step_bounds
from asap.stacks.launchers import contract_of
from asap.study.study import Study

CauseName = Literal[
    "network", "links", "slow device", "input", "interruptions", "sequence", "batch", "precision", "attention",
    "recomputation", "flags", "debugging", "counting", "experts", "setting", "host",
    "no recomputation", "whole states", "peaks", "saving", "loading", "other processes", "fragmentation",
    "sharded states", "offload", "smaller states",
]  # fmt: skip
"""What may explain a step that is not as expected; those below, with some of them, a run that died or ran."""


@dataclass(frozen=True)
class Run:
    """What the model needs to know of a run."""

    plan: Plan
    model: Architecture
    workload: Workload
    hardware: Slice
    unmodelled: tuple[str, ...] = ()
    """Settings that likely make the step longer, and that no prediction uses."""
    contradicted: frozenset[str] = frozenset()
    """Causes that its settings speak against."""
    set_causes: Mapping[str, str] = field(default_factory=dict)
    """Causes that variables of its environment bring about, and these."""

    def objection(self, seconds: float) -> str | None:
        """What is impossible about a measured step, by physics alone; ``None`` if nothing is."""
        return self.bounds.objection(seconds)

    @property
    def bounds(self) -> StepBounds:
        """What its step can take at least and at most, by physics alone."""
        return step_bounds(step_inputs([self.plan], self.model, self.workload, self.hardware))


def run_of(study: Study) -> Run | None:
    """What the model needs of a run; ``None`` where some of it is not known."""
    experiment = study.experiment
    model, work = experiment.model, experiment.workload
    if study.plan is None or study.slice is None or model is None or model.missing() or not work.tokens:
        return None
    return Run(
        study.plan, model, work, study.slice, unmodelled(experiment, "longer step"), contradicted_causes(experiment),
        causes_set(experiment.environment),
    )  # fmt: skip


def predicted(run: Run) -> Prediction | None:
    """The run by the model alone; ``None`` where it cannot be predicted."""
    from asap.prediction.from_architecture import predict

    try:
        return predict(run.plan, run.model, run.workload, run.hardware)[0]
    except AsapError:
        return None


@dataclass(frozen=True)
class Variant:
    """One reading.

    Args:
        cause: what it would be.
        size: how much of it: bytes/s, a factor.
        run: as it would have been.
        added: factor on the step for what the model has no input for.
        weight: how likely this much of it is beside the other variants: little is likelier than much.
    """

    cause: CauseName
    size: float
    run: Run
    added: float = 1.0
    weight: float = 1.0


PRIOR: dict[CauseName, float] = {
    "network": 0.30, "links": 0.10, "slow device": 0.08, "sequence": 0.12, "input": 0.05, "batch": 0.08,
    "attention": 0.08, "flags": 0.08, "recomputation": 0.06, "no recomputation": 0.05, "interruptions": 0.05,
    "precision": 0.03, "debugging": 0.02, "counting": 0.01, "experts": 0.15, "setting": 0.15, "host": 0.15,
}  # fmt: skip
"""How likely each is before the measurement. No fit: of public threads about steps far slower than expected few say
their cause; in tests/data/threads.toml it is mostly the network, and never a slow device nor the input, of which a
step of text needs a few MB. It decides only between equally good readings. Judgement: the order of causes."""
STATED = 10.0
"""Times as likely a cause is that the environment brings about. Judgement: the order of causes."""
CONTRADICTED = 0.1
"""How likely a cause is that the settings rule out, as another file may have run. Judgement: the order of causes."""
_DOUBLINGS = tuple(2.0**k for k in range(1, 11))  # times by which a network may be slower
_BY_HOST = 64.0  # times as slow as NVLink are copies by way of host memory; judgement: the order of causes
_SLOWER_DEVICE = (1.15, 1.3, 1.5, 1.75, 2.0, 2.5, 3.0)
"""From a device at its power limit to one that is shared or nearly stands. Judgement: the order of causes."""
_WITHOUT_FLAGS = (1.1, 1.2, 1.3, 1.5)
"""Times as long as with the flags of published runs: what AI-Hypercomputer/tpu-recipes sets hides
collectives and copies to the host behind computation, and can save no more than those."""
_TIMES = (1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 16.0, 32.0, 64.0)
"""Times as long as expected that waiting may make of a step. Judgement: the order of causes."""
_RESTATED = (2, 4, 8, 16)  # times by which a count may be stated otherwise
_UNITS = (60.0, 1000.0)  # minutes and milliseconds for seconds
_ON_HOST = (OPTIMIZER_ON_CPU, "host transfers")
"""Parts of a step that the host decides where something is offloaded."""
_SECONDS_OF_EXPERT = (2.5e-4, 5e-4, 1e-3, 2e-3, 4e-3)
"""Of one pass over one expert, however few its tokens: 0.9 ms in a public run that keeps all weights on each device
(modelscope/ms-swift#2213), 2.2 and 6 ms under ZeRO-3 (hiyouga/LlamaFactory#9374, QwenLM/Qwen3#736)."""


def readings(run: Run) -> Iterator[Variant]:
    """Every reading of a run, faster and slower."""
    yield from _machine(run)
    yield from _shape(run)
    yield from _program(run)
    if run.unmodelled:
        yield from (Variant("setting", slower, run, slower, 1 / slower) for slower in _SLOWER_DEVICE)
    for name in ("input", "interruptions"):
        yield from (Variant(name, times, run, times, 1 / times) for times in _TIMES)
    micro = run.plan.microbatches or 1
    counts = {float(micro), float(run.hardware.domains), 10.0, 100.0, *_UNITS} - {1.0}
    yield from (Variant("counting", factor, run, factor) for count in counts for factor in (count, 1 / count))


def passes_of_experts(run: Run) -> int:
    """Passes over single experts in a step, where a program computes them one by one; otherwise none."""
    if not contract_of(run.workload.framework).loops_over_experts:
        return 0
    passes = 2 + (run.plan.remat is not Remat.NONE)
    return run.model.moe_layers * run.model.experts * passes * (run.plan.microbatches or 1)


RATES: dict[CauseName, str] = {"network": "network", "links": "scaleup"}
"""Causes that are a rate between devices, and what of the chip has it."""


def usual_rate(run: Run, cause: CauseName) -> float:
    """Bytes/s of a device between nodes, or between the GPUs of a node."""
    return getattr(run.hardware.chip, RATES[cause]).bandwidth


def set_rate(run: Run, cause: CauseName, rate: float) -> Run:
    """The run with another rate between devices, bytes/s of each."""
    chip, part = run.hardware.chip, RATES[cause]
    changed = {part: getattr(chip, part).model_copy(update={"bandwidth": rate})}
    return replace(run, hardware=_on(run.hardware, chip.model_copy(update=changed)))


def _machine(run: Run) -> Iterator[Variant]:
    chip, nodes = run.hardware.chip, run.hardware.domains
    slowest: dict[CauseName, float] = {
        "network": _DOUBLINGS[-1] if nodes > 1 else 1.0,
        "links": _BY_HOST if chip.kind == "gpu" and run.hardware.chips > nodes else 1.0,
    }
    for cause, most in slowest.items():
        rates = [usual_rate(run, cause) / slower for slower in _DOUBLINGS if slower <= most]
        yield from (Variant(cause, rate, set_rate(run, cause, rate)) for rate in rates)
    for slower in _SLOWER_DEVICE:
        peaks = {name: peak / slower for name, peak in chip.peak_flops.items()}
        slow = chip.model_copy(update={"peak_flops": peaks, "hbm_bandwidth": chip.hbm_bandwidth / slower})
        yield Variant("slow device", slower, replace(run, hardware=_on(run.hardware, slow)), weight=slower**-2)


def _shape(run: Run) -> Iterator[Variant]:
    length, batch, plan = run.workload.sequence_length, run.workload.global_batch, run.plan
    for times in _RESTATED:
        for up in (True, False):
            changed = _scaled(length, times, up)
            if changed:
                work = run.workload.model_copy(update={"sequence_length": changed})
                yield Variant("sequence", changed, replace(run, workload=work), weight=1 / times)
            changed, micro = _scaled(batch, times, up), _scaled(plan.microbatches or 1, times, up)
            if changed:
                work = run.workload.model_copy(update={"global_batch": changed})
                split = plan.model_copy(update={"microbatches": micro}) if plan.microbatches and micro else plan
                yield Variant("batch", changed, replace(run, workload=work, plan=split), weight=1 / times)


def _scaled(value: int | None, times: int, up: bool) -> int | None:
    if not value:
        return None
    return value * times if up else value // times if value % times == 0 else None


def _program(run: Run) -> Iterator[Variant]:
    work, said = run.workload, precision_class(run.workload.precision)
    if said in ("fp8", "int8", "fp4"):
        yield Variant("precision", 1.0, working(run, precision="bf16"))
    elif work.precision not in FULL_PRECISION:
        full = "tf32" if "tf32" in run.hardware.chip.peak_flops else "fp32"
        yield Variant("precision", 1.0, working(run, precision=full))
    on_gpu = run.hardware.chip.kind == "gpu"
    if on_gpu and attention_class(work.attention) in (None, "flash"):
        yield Variant("attention", 1.0, working(run, attention="eager"))
    kinds: dict[CauseName, Remat] = {"recomputation": Remat.FULL, "no recomputation": Remat.NONE}
    for cause, remat in kinds.items():
        if run.plan.remat is not remat:
            yield Variant(cause, 1.0, replace(run, plan=run.plan.model_copy(update={"remat": remat})))
    if run.hardware.chip.kind == "tpu":
        yield from (Variant("flags", slower, run, slower, 1 / slower) for slower in _WITHOUT_FLAGS)
    if on_gpu and not work.launch_blocking:
        yield Variant("debugging", 1.0, working(run, launch_blocking=True))
        if work.compiled and framework_class(work.framework) == "fsdp":
            yield Variant("debugging", 1.0, working(run, launch_blocking=True, compiled=False))
    now = predicted(run)
    if now is None or now.step_time is None:
        return
    if run.plan.offload:
        moved = sum(one.busy_s for one in now.parts if one.name in _ON_HOST) / now.step_time.value
        yield from (Variant("host", times, run, 1 + (times - 1) * moved, 1 / times) for times in _TIMES)
    if count := passes_of_experts(run):
        for each in _SECONDS_OF_EXPERT:
            yield Variant("experts", each, run, 1 + count * each / now.step_time.value)


def working(run: Run, **changes: Any) -> Run:
    """The run with some fields of its workload changed."""
    return replace(run, workload=run.workload.model_copy(update=changes))


def _on(hardware: Slice, chip: Chip) -> Slice:
    return Slice(chip, hardware.chips_per_slice, hardware.topology, hardware.slices)


INNERMOST: tuple[Axis, ...] = ("model", "seq", "expert", "data", "replica", "stage")
"""Axes from neighbouring devices outwards, as launchers number the ranks and as predictions take them."""
Reach = Literal["inside a node", "between nodes", "inside nodes and between them"]


def reach(plan: Plan, axis: Axis, domain: int) -> Reach:
    """Where the devices of an axis lie, with so many devices in a node."""
    inner = math.prod(plan.degree(one) for one in INNERMOST[: INNERMOST.index(axis)])
    outer = inner * plan.degree(axis)
    if outer <= domain and domain % outer == 0:
        return "inside a node"
    return "between nodes" if inner >= domain else "inside nodes and between them"


def leaves_node(plan: Plan, axis: Axis, domain: int | None) -> bool:
    """Whether an axis goes over the network between nodes; without nodes (``None``), between slices."""
    if domain is None:
        return getattr(plan.dcn, axis) > 1
    return plan.degree(axis) > 1 and reach(plan, axis, domain) != "inside a node"
