"""One training step in numbers: what every formula of this room reads.

Each field is a float, or an array over cases: plans of one model, or rows of many models. A formula is written
once and broadcasts over both.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Number = float | NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Model:
    """Shapes of the decoder that the formulas need; widths are in elements."""

    layers: Number
    moe_layers: Number
    width: Number
    vocab: Number
    heads: Number
    qkv_width: Number
    out_width: Number
    key_value_width: Number
    attention_parameters: Number
    score_width: Number
    gates: Number
    blocks: Number
    """What a layer adds to its residual stream one after the other: attention, then MLP (2), or both at once (1)."""
    ff: Number
    experts: Number
    experts_per_token: Number
    expert_ff: Number
    shared_ff: Number
    tied: Number
    window: Number
    local_layers: Number


@dataclass(frozen=True, slots=True)
class Work:
    """What a step works on."""

    batch: Number
    sequence: Number
    operand_bytes: Number
    parameter_bytes: Number
    gradient_bytes: Number
    reduced_bytes: Number
    gathered_bytes: Number
    optimizer_bytes: Number
    fused_attention: Number
    score_passes: Number
    score_bytes: Number
    unfused_norm: Number
    unfused_gate: Number
    logit_bytes: Number
    loss_chunks: Number
    parallel_loss: Number
    gathers_again: Number
    compiled: Number
    overlaps_reduction: Number
    zero_stage: Number
    sequence_parallel: Number


@dataclass(frozen=True, slots=True)
class Machine:
    """Rates of one device and of what joins devices. ``tpu`` is 1 on a torus, 0 on a GPU fabric."""

    tpu: Number
    peak_matmul: Number
    peak_bf16: Number
    peak_attention: Number
    hbm_bytes: Number
    hbm_bandwidth: Number
    link_bandwidth: Number
    torus_axes: Number
    domain: Number
    latency: Number
    network_bandwidth: Number
    network_latency: Number


@dataclass(frozen=True, slots=True)
class Layout:
    """The plan: ICI degrees, DCN degrees, microbatches and what the backward pass recomputes (fractions)."""

    replica: Number
    data: Number
    seq: Number
    model: Number
    expert: Number
    stage: Number
    dcn_replica: Number
    dcn_data: Number
    dcn_stage: Number
    microbatches: Number
    repeats: Number
    again_qkv: Number
    again_out: Number
    again_mlp: Number
    again_attention: Number
    again_elementwise: Number
    kept: Number
    kept_qkv: Number
    kept_out: Number
    kept_mlp: Number
    host_optimizer: Number
    host_activations: Number


@dataclass(frozen=True, slots=True)
class Case:
    """Model, work, machine and layout of a step, or of many at once."""

    model: Model
    work: Work
    machine: Machine
    layout: Layout


Part = TypeVar("Part", Model, Work, Machine, Layout)


def stack(cases: Sequence[Case]) -> Case:
    """Many single cases as one case of arrays."""
    return Case(
        _stack([case.model for case in cases]),
        _stack([case.work for case in cases]),
        _stack([case.machine for case in cases]),
        _stack([case.layout for case in cases]),
    )


def _stack(parts: Sequence[Part]) -> Part:
    names = [field.name for field in fields(parts[0])]
    columns = {name: np.concatenate([np.atleast_1d(getattr(part, name)) for part in parts]) for name in names}
    return type(parts[0])(**columns)
