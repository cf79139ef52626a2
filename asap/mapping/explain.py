"""A program in plain words, and how every tensor lies under it."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from asap.core.errors import PlanError
from asap.core.units import Quantity, format_bytes, format_seconds
from asap.mapping.axis_rules import write_rules
from asap.mapping.coverage import Place, Target
from asap.mapping.language.format import format_decision
from asap.mapping.language.program import (
    Block,
    Decision,
    IndexMap,
    Layers,
    Mesh,
    Order,
    Program,
    Setting,
    Sharding,
    TensorSetting,
    Word,
)
from asap.mapping.sharding import TensorSharding, kept_state, shardings
from asap.plans.axes import MEANINGS

_LARGEST = 3
_FROZEN = ConfigDict(frozen=True, populate_by_name=True)


class ExplainedLine(BaseModel):
    """One decision, and what it means."""

    model_config = _FROZEN

    line: int
    decision: str
    meaning: str


class Laid(BaseModel):
    """How a tensor lies: for each dimension the mesh axes that split it, and the line that says so."""

    model_config = _FROZEN

    tensor: str
    layers: str | None = Field(description="first..last; null outside of layers")
    shape: tuple[int | None, ...]
    axes: tuple[tuple[str, ...], ...] = Field(description="mesh axes of each dimension, as in a PartitionSpec")
    lines: tuple[int | None, ...] = Field(description="for each dimension the line that decides; null: the usual rule")
    share: str | None = Field(description="of the tensor on one device: 1/16; null where the mesh is not known")


class KeptTensor(BaseModel):
    """What one device keeps of a parameter and both its Adam moments, over all layers."""

    model_config = _FROZEN

    tensor: str
    hbm_bytes: float
    host_bytes: float


class Explanation(BaseModel):
    """What a program says, in words and tensor by tensor."""

    model_config = _FROZEN

    schema_: Literal["asap.mapping/1"] = Field(default="asap.mapping/1", alias="schema")
    lines: tuple[ExplainedLine, ...]
    parameters: tuple[Laid, ...] = Field(description="empty without a model")
    activations: tuple[Laid, ...] = Field(description="empty without a model")
    kept: tuple[KeptTensor, ...] = Field(description="between two steps, exact; empty without a model and a mesh")
    step_time: Quantity | None = Field(
        default=None, description="predicted, seconds; null where batch or machine is not known"
    )
    hbm: Quantity | None = Field(default=None, description="predicted for the peak of a step, bytes of one device")
    notes: tuple[str, ...] = Field(
        default=(), description="what the prediction says of the program, and what it leaves out"
    )
    maxtext_rules: tuple[tuple[str, tuple[str, ...]], ...] | None = Field(
        description="logical_axis_rules for MaxText that lay the tensors so; null where MaxText cannot say it"
    )
    maxtext_refusal: str | None = Field(description="why MaxText cannot say it")


def explain(program: Program, target: Target | None) -> Explanation:
    """A checked program in words; tensor by tensor where the model is known."""
    lines = tuple(
        ExplainedLine(line=d.at.line, decision=format_decision(d), meaning=meaning(d)) for d in program.decisions
    )
    if target is None:
        return Explanation(
            lines=lines, parameters=(), activations=(), kept=(), maxtext_rules=None, maxtext_refusal=None
        )
    rules, refusal = None, None
    try:
        rules = tuple((name, tuple(axes)) for name, axes in write_rules(program, target))
    except PlanError as error:
        refusal = str(error)
    return Explanation(
        lines=lines,
        parameters=tuple(_joined(_laid(shardings(target, program, "shard"), program.mesh))),
        activations=tuple(_joined(_laid(shardings(target, program, "constrain"), program.mesh))),
        kept=_kept(program, target),
        maxtext_rules=rules,
        maxtext_refusal=refusal,
    )


def kept_in_words(kept: Sequence[KeptTensor]) -> str:
    """What one device keeps in all, and the tensors that take most of its HBM."""
    hbm, host = sum(each.hbm_bytes for each in kept), sum(each.host_bytes for each in kept)
    largest = sorted(kept, key=lambda each: -each.hbm_bytes)[:_LARGEST]
    named = ", ".join(f"{each.tensor} {format_bytes(each.hbm_bytes)}" for each in largest if each.hbm_bytes)
    beside = f", and {format_bytes(host)} in memory of the host" if host else ""
    return f"Parameters and Adam moments on a device: {format_bytes(hbm)} of HBM ({named or 'none'}){beside}."


def predicted_in_words(found: Explanation) -> Iterator[str]:
    """The predicted step and its HBM; a line of its own for each note."""
    step, hbm = found.step_time, found.hbm
    if step is not None:
        ends = " to ".join(format_seconds(end) for end in (step.low, step.high) if end is not None)
        held = f", {format_bytes(hbm.value)} of HBM at its peak" if hbm else ""
        yield f"Predicted: {format_seconds(step.value)} a step{f' ({ends})' if ends else ''}{held}."
        yield from found.notes


def meaning(decision: Decision) -> str:
    """What a decision does, in one sentence without a full stop."""
    if isinstance(decision, Mesh):
        return "; ".join(
            f"{d.degree.value} {'slices' if d.network == 'dcn' else 'devices'} along {d.axis.text}{_role(d.axis.text)}"
            for d in decision.degrees
        )
    if isinstance(decision, Order):
        return _order(decision)
    if isinstance(decision, Sharding):
        what = "split" if decision.keyword == "shard" else "constrained to be split"
        axes = " and ".join(axis.text for axis in decision.axes)
        over = f"is {what} over {axes}" if axes else "is whole on every device"
        return f"dimension {decision.dimension.text} of {_names(decision.names)} {over}{_layers(decision.layers)}"
    if isinstance(decision, TensorSetting):
        return _setting(decision)
    return _once(decision)


def _setting(decision: TensorSetting) -> str:
    value, layers = decision.value.text, _layers(decision.layers)
    if decision.keyword == "remat":
        return f"the backward pass recomputes under policy {value}{layers or ' in all layers'}"
    verb = {"place": "lies in memory", "layout": "is stored by", "dtype": "is kept as"}[decision.keyword]
    return f"{_names(decision.names)} {verb} {value}{layers}"


def _once(decision: Setting) -> str:
    text = decision.word or " x ".join(str(count.value) for count in decision.counts)
    return {
        "microbatches": f"the batch in {text} parts, one after the other",
        "pipeline_repeats": f"{text} virtual stages on each device",
        "grid": f"a grid of {text} devices",
        "loss_chunks": f"logits and loss in {text} parts",
        "first_moment": f"Adam's first moment is kept as {text}",
        "weight_precision": f"parameters and their gradients are kept as {text}",
        "algorithm": f"the distributed algorithm {text}",
        "stationary": f"operand {text} stays where it is",
        "panels": f"operands are sent in {text} panels",
        "exchange": f"blocks and halos travel by {text}",
        "halo": f"halos are {text} cells wide and are exchanged once in {text} steps",
        "replication": f"{text} copies of the operands",
        "overlap": "sends overlap with products" if text == "on" else "sends and products take turns",
    }[decision.keyword]


def _order(order: Order) -> str:
    if isinstance(order.by, Block):
        return f"devices in blocks of {' x '.join(str(side.value) for side in order.by.sides)}, each row by row"
    if isinstance(order.by, IndexMap):
        names = ", ".join(name.text for name in order.by.parameters)
        return f"the device at ({names}) of the torus has the place that the map gives"
    return {
        "row": "devices row by row",
        "col": "devices column by column",
        "fold": "devices row by row along folded axes, so that rings need no wrap-around link",
    }[order.by.kind]


def _kept(program: Program, target: Target) -> tuple[KeptTensor, ...]:
    if program.mesh is None:
        return ()
    found = kept_state(program, target)
    return tuple(KeptTensor(tensor=name, hbm_bytes=kept.hbm, host_bytes=kept.host) for name, kept in found.items())


def _laid(found: Iterator[TensorSharding], mesh: Mesh | None) -> Iterator[Laid]:
    for sharding in found:
        axes = tuple(split.axes for split in sharding.splits)
        devices = 1
        for axis in (axis for dimension in axes for axis in dimension):
            devices *= mesh.total(axis) if mesh else 1
        yield Laid(
            tensor=sharding.place.tensor.name,
            layers=_span(sharding.place),
            shape=tuple(split.dimension.length for split in sharding.splits),
            axes=axes,
            lines=tuple(split.line.at.line if split.line else None for split in sharding.splits),
            share=(f"1/{devices}" if devices > 1 else "all") if mesh else None,
        )


def _joined(rows: Iterator[Laid]) -> Iterator[Laid]:
    """Rows whose tensor lies the same way in the layers that follow become one."""
    for _, group in groupby(rows, key=lambda row: row.model_copy(update={"layers": None})):
        first, *rest = group
        last = (rest or [first])[-1]
        ends = f"{first.layers}..{last.layers}".split("..")
        yield first.model_copy(update={"layers": f"{ends[0]}..{ends[-1]}"}) if rest else first


def _span(place: Place) -> str | None:
    if place.layers is None:
        return None
    first, last = place.layers
    return str(first) if first == last else f"{first}..{last}"


def _role(axis: str) -> str:
    role = MEANINGS.get(axis)  # pyright: ignore[reportArgumentType, reportCallIssue]
    return f" ({role})" if role else ""


def _names(names: Sequence[Word]) -> str:
    return ", ".join("all tensors" if name.text == "*" else name.text for name in names)


def _layers(layers: Layers | None) -> str:
    if layers is None:
        return ""
    first, last = layers.first.value, layers.last.value
    return f" in layer {first}" if first == last else f" in layers {first} to {last}"
