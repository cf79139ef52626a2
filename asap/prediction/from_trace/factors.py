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
from asap.profiles.collectives import compute_class
from asap.traces.graph.graph import Cause, Graph
from asap.traces.trace import ANY_COLLECTIVE, Integers, OperationKind, RankTrace, collective_kind
from asap.traces.what_if.apply import edges_of

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
    "model": ("tensor",),
    "seq": ("sequence",),
    "expert": ("expert",),
    "data": ("data",),
    "replica": ("replica", "slices"),
    "stage": ("stage",),
}


@dataclass(frozen=True)
class Modelled:
    """Seconds of one step by the step model."""

    products: float
    memory: float
    launches: float
    axes: Mapping[Axis, float]
    exposed: Mapping[Axis, float]
    parts: tuple[float, ...]
    """Of a token."""
    pass_s: float
    """Of a microbatch on the slowest stage."""
    microbatches: int
    own_s: float
    """Without the bubble."""
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

    @property
    def products(self) -> float:
        """Matrix products and attention. What is beyond the usual rate is the last wave of each kernel, which does not
        fill the device (Volkov & Demmel 2008): it grows with the number of kernels, not with the work of each."""
        follows = _ratio(self.after.products, self.before.products)
        return follows * (1 - self.beyond) + min(follows, self.host) * self.beyond

    @property
    def memory(self) -> float:
        """What is bound by HBM."""
        return _ratio(self.after.memory, self.before.memory)

    @property
    def compute(self) -> float:
        """Both together, for kernels that do not say which they are."""
        return _ratio(*(each.products + each.memory for each in (self.after, self.before)))

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
        return self.of_axes([axis for axis in possible if self.before.axes[axis] > 0])

    def of_axes(self, axes: Sequence[Axis]) -> float:
        """Collectives that serve these axes."""
        return _ratio(sum(self.after.axes[axis] for axis in axes), sum(self.before.axes[axis] for axis in axes))

    def on_new_axes(self, after: Mapping[Axis, float]) -> float:
        """Of what each axis takes in the target, that of axes that the traced run did not use."""
        return sum(after[axis] for axis in _BUSY if self.before.axes[axis] == 0)


def factors(before: Modelled, after: Modelled, traced: Run, target: Run, products_s: float = 0.0) -> Factors:
    """From what the step model says of the traced run, whose products take ``products_s`` (0 where that is not known),
    and of the target."""
    widths = load_calibration().full.anchored_widths.of(traced.architecture.is_moe)
    doubt = math.expm1(widths.at(float(change_between(after.parts, before.parts)))) if target != traced else 0.0
    beyond = max(1 - before.products / products_s, 0.0) if products_s else 0.0
    return Factors(before, after, target, doubt, beyond)


def modelled(run: Run, head: bool = True) -> Modelled:
    """One step by the step model, on the slowest stage, or on one without logits.

    Raises:
        InsufficientEvidenceError: the model, the batch or the sequence is not known.
    """
    plan = infer_remat(run.plan, run.architecture, run.workload, run.hardware)
    model = run.architecture if head else run.architecture.model_copy(update={"vocab": 1})
    found = evaluate_plans([plan], model, run.workload, run.hardware, load_calibration().full)
    step, layout, work = found.step, found.inputs.plan, found.inputs.workload
    once = _one(step.replica_exposed + step.slices_exposed + step.optimizer + step.transfer_exposed)
    busy = _one(step.total) - _one(step.bubble)
    again = _one(layout.recompute_layer) > 0
    tokens = _one(work.batch) * _one(work.sequence)
    on_accelerator = Modelled(
        products=_one(step.compute),
        memory=_memory(found),
        microbatches=run.pipeline.microbatches,
        pass_s=(busy - once) / run.pipeline.microbatches,
        own_s=busy,
        idle=bubble_share(run.pipeline, again),
        launches=_one(found.inputs.layers_per_stage) * _one(layout.microbatches) * (3 + _one(layout.recompute_layer)),
        axes={axis: sum(_one(getattr(step, name)) for name in names) for axis, names in _BUSY.items()},
        exposed={axis: sum(_one(getattr(step, f"{name}_exposed")) for name in names) for axis, names in _BUSY.items()},
        parts=tuple(_one(part) / tokens for part in step_parts(step)),
    )
    return _on_cpu(on_accelerator, found, run) if run.hardware.chip is VIRTUAL_DEVICE else on_accelerator


def _memory(found: Evaluation) -> float:
    """Seconds of what is bound by HBM. The step model takes activations for bf16; in fp32 they are twice as large."""
    width = max(_one(found.inputs.workload.operand_bytes) / ACTIVATION_BYTES, 1.0)
    return width * _one(found.step.hbm) + _one(found.step.optimizer)


def _on_cpu(modelled: Modelled, found: Evaluation, run: Run) -> Modelled:
    """With what XLA compiles for a CPU; YNN, which computes products there, computes sums as well."""
    constants = load_calibration().full.resolve_one(Groups.of(run.hardware, run.workload))
    again = 1 + _one(found.step.hbm_again) / _one(found.step.hbm - found.step.hbm_again)
    return replace(
        modelled,
        products=modelled.products + _one(unfused_sum_seconds(found.inputs, constants)),
        memory=again * _one(memory_seconds(found.inputs, constants)),
    )


def _one(value: Number) -> float:
    return float(np.asarray(value, dtype=float).flat[0])


def _ratio(after: float, before: float) -> float:
    return after / before if before else 1.0


OF_DEVICES = PRODUCTS, MEMORY, COMPUTE = "products", "memory", "compute"
HOST = "host"
_PRODUCTS = ("matmul", "attention", "convolution")


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
    kinds = [compute_class(name) for name in rank.names]
    named = any(kinds[number] in _PRODUCTS for number in np.unique(rank.operations.name[computing]).tolist())
    computes = [(PRODUCTS if kind in _PRODUCTS else MEMORY) if named else COMPUTE for kind in kinds]
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
    if name in (*OF_DEVICES, HOST):
        return float(getattr(factors, name))
    kind, *axes = name.split(" ")
    return factors.of_axes(cast(Sequence[Axis], axes)) if axes else factors.collective(kind, names)
