"""How the time of each class of kernels changes from one run to another, by the step model."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

import numpy as np
from numpy.typing import NDArray

from asap.plans import Plan
from asap.plans.axes import Axis
from asap.prediction.evaluation import Evaluation, evaluate_plans
from asap.prediction.from_trace.pipeline import bubble_share, memory_seconds, unfused_sum_seconds
from asap.prediction.from_trace.run import VIRTUAL_DEVICE, Run, axes_of
from asap.prediction.step_model.compute import ACTIVATION_BYTES
from asap.prediction.step_model.groups import Groups
from asap.prediction.step_model.inputs import Number
from asap.prediction.step_model.recomputation import infer_remat
from asap.prediction.step_model.step_parts import change_between, step_parts
from asap.prediction.uncertainty.calibration import load_calibration
from asap.profiles.collectives import work_of_kernel
from asap.traces.graph.graph import Cause, Graph
from asap.traces.trace import ANY_COLLECTIVE, NS, Integers, OperationKind, RankTrace, collective_kind
from asap.traces.what_if.apply import Changed, edges_of

AXES_BEHIND: Mapping[str, tuple[Axis, ...]] = {
    "all-reduce": ("model", "replica"),
    "reduce-scatter": ("data", "model", "replica"),
    "all-gather": ("data", "model", "seq", "replica"),
    "all-to-all": ("expert", "seq"),
    "collective-permute": ("stage", "seq", "model"),
    "send-recv": ("stage",),
    "collective-broadcast": ("replica", "data"),
}
"""Axes whose traffic a collective of a kind may carry ("How to Scale Your Model", chapters 3 and 5)."""

_BUSY: Mapping[Axis, tuple[str, ...]] = {
    "model": ("tensor",), "seq": ("sequence",), "expert": ("expert",), "data": ("data",),
    "replica": ("replica", "slices"), "stage": ("stage",),
}  # fmt: skip


@dataclass(frozen=True)
class Modelled:
    """Seconds of one step by the step model."""

    products: float
    attention: float
    memory: float
    update: float
    launches: float
    axes: Mapping[Axis, float]
    exposed: Mapping[Axis, float]
    parts: tuple[float, ...]
    """Of a token."""
    microbatches: int
    layers: float
    """Of a stage."""
    idle: float
    """Passes that fill and drain the pipeline."""


@dataclass(frozen=True)
class Factors:
    """The target over the traced run, by class."""

    before: Modelled
    after: Modelled
    target: Run
    doubt: float
    """Relative half-width at 90 % of what the step model says of two plans, of which one was measured."""
    beyond: float = 0.0
    """Share of the traced time of products that the rates of the step model do not explain."""

    def kernels(self, name: str) -> float:
        """Kernels of a class. What products take beyond the usual rate is the last wave of each kernel, which does not
        fill the device (Volkov & Demmel 2008): it grows with the number of kernels, not with the work of each."""
        parts = _PARTS if name == COMPUTE else (name,)
        follows = _ratio(*(sum(getattr(each, part) for part in parts) for each in (self.after, self.before)))
        if name != PRODUCTS:
            return follows
        return follows * (1 - self.beyond) + min(follows, self.host) * self.beyond

    @property
    def host(self) -> float:
        """Launches."""
        return _ratio(self.after.launches, self.before.launches)

    def collective(self, kind: str, recorded: Collection[str]) -> float:
        """Collectives of a kind: of the axes that may be behind it. Unchanged where none of them was in use.

        Gradients of sharded parameters are all-reduced where the recorded kinds lack a reduce-scatter.
        """
        possible = AXES_BEHIND.get(kind) or tuple(_BUSY)
        if kind == "all-reduce" and "reduce-scatter" not in recorded:
            possible = (*possible, "data")
        return self.axes_factor([axis for axis in possible if self.before.axes[axis] > 0])

    def axes_factor(self, axes: Sequence[Axis]) -> float:
        """Collectives that serve these axes."""
        return _ratio(sum(self.after.axes[axis] for axis in axes), sum(self.before.axes[axis] for axis in axes))

    def on_new_axes(self, after: Mapping[Axis, float]) -> float:
        """Of what each axis takes in the target, that of axes that the traced run did not use."""
        return sum(after[axis] for axis in _BUSY if self.before.axes[axis] == 0)

    def exposed_on_new_axes(self, pass_s: float) -> float:
        """Seconds that nothing hides of collectives on axes that the traced run did not use, where a pass over the
        layers takes ``pass_s``. Gradients that are reduced layer by layer behind the backward pass of the last
        microbatch leave over the first layer's, and what takes longer than the pass (Li et al. 2020,
        arXiv:2006.15704, 3.2.3)."""
        after, exposed = self.after, self.on_new_axes(self.after.exposed)
        if self.before.axes["replica"] or not self.target.workload.overlaps_reduction:
            return exposed
        busy = after.axes["replica"]
        return exposed - after.exposed["replica"] + busy - min(busy, 2 / 3 * pass_s) * (1 - 1 / after.layers)


def factors(before: Modelled, after: Modelled, traced: Run, target: Run, products_s: float = 0.0) -> Factors:
    """From what the step model says of the traced run, whose products take ``products_s`` (0 where that is not known),
    and of the target."""
    widths = load_calibration().full.anchored_widths.of(traced.architecture.is_moe)
    doubt = math.expm1(widths.at(float(change_between(after.parts, before.parts)))) if target != traced else 0.0
    beyond = max(1 - before.products / products_s, 0.0) if products_s else 0.0
    return Factors(before, after, target, doubt, beyond)


def modelled(run: Run, head: bool = True, names: Collection[str] = ()) -> Modelled:
    """One step by the step model, on the slowest stage, or on one without logits. What has no class of its own among
    those of the trace is a part of the larger one that holds its kernels.

    Raises:
        InsufficientEvidenceError: the model, the batch or the sequence is not known.
    """
    plan = infer_remat(run.plan, run.architecture, run.workload, run.hardware)
    model = run.architecture if head else run.architecture.model_copy(update={"vocab": 1})
    found = evaluate_plans([plan], model, run.workload, run.hardware, load_calibration().full)
    step, layout, work = found.step, found.inputs.plan, found.inputs.workload
    again = _one(layout.recompute_layer) > 0
    tokens = _one(work.batch) * _one(work.sequence)
    on_accelerator = Modelled(
        products=_one(step.matmul), attention=_one(step.compute) - _one(step.matmul), memory=_memory(found),
        update=_one(step.optimizer), microbatches=run.pipeline.microbatches,
        layers=_one(found.inputs.layers_per_stage), idle=bubble_share(run.pipeline, again),
        launches=_one(found.inputs.layers_per_stage) * _one(layout.microbatches) * (3 + _one(layout.recompute_layer)),
        axes={axis: sum(_one(getattr(step, name)) for name in names) for axis, names in _BUSY.items()},
        exposed={axis: sum(_one(getattr(step, f"{name}_exposed")) for name in names) for axis, names in _BUSY.items()},
        parts=tuple(_one(part) / tokens for part in step_parts(step)),
    )  # fmt: skip
    every = _on_cpu(on_accelerator, found, run) if run.hardware.chip is VIRTUAL_DEVICE else on_accelerator
    for part, whole in ((ATTENTION, PRODUCTS), (UPDATE, MEMORY)):
        if part not in names:
            every = replace(every, **{part: 0.0, whole: getattr(every, part) + getattr(every, whole)})
    return every


def _memory(found: Evaluation) -> float:
    """Seconds of what is bound by HBM. The step model takes activations for bf16; in fp32 they are twice as large."""
    width = max(_one(found.inputs.workload.operand_bytes) / ACTIVATION_BYTES, 1.0)
    return width * _one(found.step.hbm)


def _on_cpu(modelled: Modelled, found: Evaluation, run: Run) -> Modelled:
    """With what XLA compiles for a CPU; YNN, which computes products there, computes sums as well."""
    constants = load_calibration().full.resolve_one(Groups.of(run.hardware, run.workload))
    again = 1 + _one(found.step.hbm_again) / _one(found.step.hbm - found.step.hbm_again)
    return replace(
        modelled,
        products=modelled.products + _one(unfused_sum_seconds(found.inputs, constants)),
        memory=again * _one(memory_seconds(found.inputs, constants)),
        update=0.0,
    )


def _one(value: Number) -> float:
    return float(np.asarray(value, dtype=float).flat[0])


def _ratio(after: float, before: float) -> float:
    return after / before if before else 1.0


_PARTS = PRODUCTS, ATTENTION, MEMORY, UPDATE = "products", "attention", "memory", "update"
OF_DEVICES = (*_PARTS, COMPUTE := "compute")
HOST = "host"
_CLASSES = {"matmul": PRODUCTS, "convolution": PRODUCTS, "attention": ATTENTION, "update": UPDATE}


def classes_of(graph: Graph, plan: Plan) -> tuple[list[str], Integers]:
    """The classes of a graph: matrix products, what is bound by HBM, what hosts do, each kind of collective; those of
    named groups by the axes of the traced ``plan`` that they serve. And the number of each edge's class."""
    labels = [class_labels(rank, plan) for rank in graph.trace.ranks]
    names = sorted({name for each in labels for name in np.unique(each).tolist()} | {HOST})
    found = edges_of(graph, [np.searchsorted(names, mine) for mine in labels])
    return names, np.where(graph.edges.cause == Cause.HOST, names.index(HOST), found)


def class_labels(rank: RankTrace, plan: Plan | None = None) -> NDArray[np.str_]:
    """The class of each operation of a rank: of a collective its kind, then its axes if they are known.

    Where no name says what a product is, all computation is one class.
    """
    computing = rank.operations.kind == OperationKind.COMPUTE
    kinds = [_CLASSES.get(work_of_kernel(name).work, MEMORY) for name in rank.names]
    named = {kinds[number] for number in np.unique(rank.operations.name[computing]).tolist()} & {PRODUCTS, ATTENTION}
    computes = kinds if named else [COMPUTE] * len(kinds)
    communicates = [collective_kind(name) or ANY_COLLECTIVE for name in rank.names]
    by_kind = (np.array(each)[rank.operations.name] for each in (communicates, computes))
    communication, compute = by_kind
    if plan is not None:
        axes = ["".join(f" {axis}" for axis in axes_of(call.group.ranks, plan)) for call in rank.collectives]
        communication = np.char.add(communication, np.array([*axes, ""])[rank.operations.collective])
    found = np.where(rank.operations.kind == OperationKind.COMMUNICATION, communication, MEMORY)
    return np.where(computing, compute, found)


def factor_of(factors: Factors, name: str, names: Collection[str]) -> float:
    """The target over the traced run, for one of the classes of a trace."""
    if name in OF_DEVICES:
        return factors.kernels(name)
    if name == HOST:
        return factors.host
    kind, *axes = name.split(" ")
    return factors.axes_factor(cast(Sequence[Axis], axes)) if axes else factors.collective(kind, names)


KERNEL = round(3e-6 / NS)
"""Nanoseconds of each kernel that its work does not change: 3.2 µs on an H100, 3.0 on a B200 (matrix products of
NVIDIA's aiconfigurator, 840 shapes of layers each, split up to eight ways: with it, work over a rate explains their
times to 7 and 8 %, without it to 15 and 21 %)."""


def scaled_classes(changed: Changed, names: Sequence[str], classes: Integers, found: Factors) -> Changed:
    """Each edge by the factor of its class, and the fixed time of kernels by their number."""
    edges, factor = changed.graph.edges, np.array([*(factor_of(found, name, names) for name in names), 1.0])
    kernels = np.isin(classes, [number for number, name in enumerate(names) if name in OF_DEVICES])
    fixed = np.where(kernels & (edges.cause == Cause.DURATION), np.minimum(edges.weight, KERNEL), 0)
    weight = np.rint((edges.weight - fixed) * factor[classes] + fixed * found.host).astype(np.int64)
    return Changed(changed.graph.with_weights(weight), changed.scaled | (classes >= 0))


_OF_LAYERS: tuple[Axis, ...] = ("model", "seq", "expert")
"""Axes that communicate in each layer."""


def passes_s(
    changed: Changed, names: Sequence[str], classes: Integers, found: Factors, traced: Run
) -> tuple[float, float]:
    """Seconds of a pass over the layers of a stage, traced and in the target."""
    before, after = (modelled(run, False, names) for run in (traced, found.target))
    layers, trace = replace(found, before=before, after=after), changed.graph.trace
    of_layers, in_all = (each.products + each.attention + each.memory for each in (before, found.before))
    inside = [{*name.split(" ")} & {*OF_DEVICES[:3], COMPUTE, *_OF_LAYERS} != set() for name in names]
    counts = np.array([*inside, False])[classes] * of_layers / in_all / len(trace.ranks) / trace.recorded_steps
    cause = changed.graph.edges.cause
    counts *= np.select([cause == Cause.DURATION, cause == Cause.COLLECTIVE], [1.0, 0.5])  # two edges a collective
    weights = (each.graph.edges.weight for each in (changed, scaled_classes(changed, names, classes, layers)))
    now, then = (NS * float((counts * each).sum()) for each in weights)
    then += layers.on_new_axes({axis: layers.after.exposed[axis] if axis in _OF_LAYERS else 0.0 for axis in _BUSY})
    return now / before.microbatches, then / after.microbatches
