"""A run under plans, in numbers."""

import math
import re
from collections.abc import Sequence
from dataclasses import fields

import numpy as np

from asap.core.errors import InsufficientEvidenceError
from asap.hardware import Chip, find_chip
from asap.hardware.instances import chips_per_node
from asap.hardware.slices import Slice
from asap.models import Architecture, Workload
from asap.plans import AXES, Plan, Remat
from asap.plans.remat import Policy
from asap.prediction.step_model.encoding.workload import is_xla, under_meshes, workload_under_plans
from asap.prediction.step_model.groups import (
    generation,
    has_kernel_of_the_chip,
    kernel_of,
    precision_class,
)
from asap.prediction.step_model.inputs import HardwareInputs, ModelInputs, Number, PlanInputs, StepInputs
from asap.prediction.step_model.remat_policies import EVERY_SECOND_PRODUCT, RematShares, remat_shares
from asap.stacks.kin import kin_of
from asap.stacks.launchers import contract_of

FIRST_FLASH = 0.5
"""Rate of FlashAttention over that of FlashAttention-2, "around 2× speedup" (arXiv:2307.08691, abstract)."""
FLEX_ON_BLACKWELL = 0.45
"""Rate of FlexAttention in Triton over that of FlashAttention-4, which takes 1.6 to 3.2 times less time forward and
1.85 to 2.3 times less backward (PyTorch, "FlexAttention + FlashAttention-4: Fast and Flexible", 2026)."""
_BLACKWELL = ("b200", "b300")
_SECOND = r"(flash.?att(entio)?n|flash|\bfa).?2"


def attention_rate(workload: Workload, chip: Chip) -> float:
    """Share of the rate of a fused kernel of today."""
    kernel = FIRST_FLASH if kernel_of(workload, chip.kind) == "flash-1" else 1.0
    if generation(chip.name) in _BLACKWELL:
        return kernel * _rate_on_blackwell(workload, chip)
    ported = not has_kernel_of_the_chip(workload.attention, workload.framework)
    return kernel * (chip.ported_attention if ported else 1.0)


def _rate_on_blackwell(workload: Workload, chip: Chip) -> float:
    """There PyTorch's own attention calls cuDNN (``check_prefer_cudnn_attention`` in its ``sdp_utils.cpp``), so that
    FlashAttention-2 has to be said, or ``varlen``, which calls it (``torch.nn.attention.varlen``)."""
    said = (workload.attention or "").casefold()
    of_the_chip = has_kernel_of_the_chip(workload.attention, workload.framework)
    if re.search(_SECOND, said) or ("varlen" in said and not of_the_chip):
        return chip.ported_attention
    return FLEX_ON_BLACKWELL if "flex" in said and not of_the_chip else 1.0


HOST_UPDATE = 1.2e11
"""Bytes/s of Adam on the processors of a node, after what ZeRO-Offload (arXiv:2101.06840) gives for 10 billion
parameters, 2.6 s, which was not looked up again. A whole step of 3 billion took 2.4 to 3.1 s on two A100s
(microsoft/DeepSpeed#7474). Judgement: steps with an optimizer on the host."""
SLOWEST_HOST_LINK = 1.6e10
"""Bytes/s to the host in one direction, where a chip's maker publishes none: that of the slowest chip that has one."""


def hardware_inputs(hardware: Slice, workload: Workload) -> HardwareInputs:
    """Rates of one JAX device."""
    chip, share = hardware.chip, hardware.chip.devices
    node = chips_per_node(chip) or 1
    on_host = min(node, hardware.chips_per_slice) * share
    half = chip.peak_flops.get("bf16") or chip.peak_flops["fp16"]
    said, kind = (workload.precision or "").casefold(), precision_class(workload.precision)
    peak = chip.peak_flops.get(said) or chip.peak_flops.get(kind, half)
    used = [axis for axis, length in enumerate(hardware.topology or ()) if length > 1]
    sides = (*map(float, hardware.topology or ()), 1.0, 1.0, 1.0)[:3]
    links = (*(2.0 if wraps else 1.0 for wraps in hardware.wraps), 1.0, 1.0, 1.0)[:3]
    if chip.torus is not None:
        link = chip.torus.link_bandwidth
        domain, latency = hardware.devices_per_slice, chip.torus.latency
    else:
        assert chip.scaleup is not None
        link, domain, latency = chip.scaleup.bandwidth, chip.scaleup.domain, chip.scaleup.latency
    return HardwareInputs(
        tpu=float(chip.kind == "tpu"),
        peak_matmul=peak / share,
        peak_bf16=half / share,
        peak_attention=half / share * attention_rate(workload, chip),
        hbm_bytes=chip.device_capacity,
        hbm_bandwidth=chip.hbm_bandwidth / share,
        host_bandwidth=(chip.host_bandwidth or SLOWEST_HOST_LINK) / share,
        host_update=HOST_UPDATE / on_host,
        host_devices=on_host,
        host_bytes=(chip.host_memory or math.inf) * max(node / hardware.chips_per_slice, 1) / share,
        link_bandwidth=link / share,
        torus_axes=max(len(used), 1),
        **dict(zip(("torus_x", "torus_y", "torus_z"), sides, strict=True)),
        **dict(zip(("links_x", "links_y", "links_z"), links, strict=True)),
        scaleup_domain=domain,
        link_latency=latency,
        network_bandwidth=chip.network.bandwidth / share,
        network_port=_network_port(chip),
        network_latency=chip.network.latency,
    )


def _network_port(chip: Chip) -> float:
    node, found = chips_per_node(chip) or 1, find_chip(chip.name)
    maker = found.chip.network.bandwidth if found else chip.network.bandwidth
    rate, ports = chip.network.bandwidth * node, round(chip.network.bandwidth * node / maker)
    return rate / (min(max(ports, 1), node) if chip.network.stated else node)


def model_inputs(a: Architecture) -> ModelInputs:
    """Widths of the decoder; MLA by its own projections (arXiv:2405.04434, section 2.1)."""
    layers, width, heads = (a.layers or 0) + a.mtp_layers, a.d_model or 0, a.heads or 0
    if a.kv_lora_rank is not None:
        nope, rope, value = a.qk_nope_head_dim or 0, a.qk_rope_head_dim or 0, a.v_head_dim or 0
        query = nope + rope
        query_rank = a.q_lora_rank or 0
        into = width * query_rank + query_rank * heads * query if query_rank else width * heads * query
        latent = width * (a.kv_lora_rank + rope) + a.kv_lora_rank * heads * (nope + value)
        parameters = into + latent + heads * value * width
        qkv, key_value = heads * (query + nope + value), heads * (nope + rope + value)
    else:
        query = value = a.head_dim or 0
        key_value = 2 * (a.kv_heads or 0) * query
        qkv = heads * query + key_value
        parameters = width * (qkv + heads * value)
    every = a.global_layer_every
    local = 0.0 if a.sliding_window is None else layers * (1 - 1 / every if every else 1.0)
    return ModelInputs(
        layers=layers,
        moe_layers=a.moe_layers + (a.mtp_layers if a.is_moe else 0),
        width=width,
        vocab=a.vocab or 0,
        heads=heads,
        kv_heads=heads if a.kv_lora_rank is not None else a.kv_heads or heads,
        qkv_width=qkv,
        out_width=heads * value,
        key_value_width=key_value,
        attention_parameters=a.attention_parameters or parameters,
        score_width=heads * (query + value),
        up_projections=2 if a.gated_mlp else 1,
        sequential_blocks=1 if a.parallel_block else 2,
        mlp_width=a.d_ff or 0,
        experts=a.experts,
        experts_per_token=a.experts_per_token,
        expert_mlp_width=a.expert_d_ff or 0,
        shared_mlp_width=a.shared_experts * (a.expert_d_ff or 0),
        losses=1 + a.mtp_layers,
        tied_embeddings=float(a.tied_embeddings),
        window=a.sliding_window or 0,
        local_layers=local,
    )


def plan_inputs(plans: Sequence[Plan], model: ModelInputs, workload: Workload) -> PlanInputs:
    """Plans as arrays of shape (plans,).

    A plan that does not say what it recomputes is taken to recompute everything. Microbatches that are unknown are as
    many as the stages in MaxText's pipeline (its configs/types.py), and hold one sequence each in another; else there
    is one microbatch.
    """
    replica, data, seq, tensor, expert, stage = np.array([plan.ici.degrees for plan in plans], dtype=float).T
    far = {axis: _column([getattr(plan.dcn, axis) for plan in plans]) for axis in AXES}
    shards = replica * data * expert * far["replica"] * far["data"] * far["expert"]
    stages = stage * far["stage"]
    microbatches = np.array([plan.microbatches or 0 for plan in plans])
    batch = np.array([plan.global_batch or workload.global_batch or 0 for plan in plans])
    as_stages = kin_of(workload.framework).microbatches == "stages"
    unknown = np.where(stages > 1, stages if as_stages else np.maximum(batch / shards, 1.0), 1.0)
    shares = [remat_shares(_policy(plan, workload), model, is_xla(workload)) for plan in plans]
    return PlanInputs(
        replica=replica, data=data, seq=seq * far["seq"], model=tensor * far["model"], expert=expert * far["expert"],
        stage=stage, dcn_replica=far["replica"], dcn_data=far["data"], dcn_stage=far["stage"],
        microbatches=np.where(microbatches > 0, microbatches, unknown),
        pipeline_repeats=_column([plan.pipeline_repeats if plan.degree("stage") > 1 else 1 for plan in plans]),
        **{field.name: _column([getattr(share, field.name) for share in shares]) for field in fields(RematShares)},
        host_optimizer=_column(["optimizer" in plan.offload for plan in plans]),
        host_parameters=_column(["parameters" in plan.offload for plan in plans]),
        host_activations=_column([plan.moves_inputs for plan in plans]),
    )  # fmt: skip


def _column(values: Sequence[float]) -> Number:
    """A value of each plan; one number where many plans have the same, which is not an array to calculate with."""
    same = len(values) > 1 and len({*values}) == 1
    return float(values[0]) if same else np.array(values, dtype=float)


def _policy(plan: Plan, workload: Workload) -> Policy:
    """What a plan recomputes; everything where it does not say it."""
    if plan.remat is Remat.MINIMAL and contract_of(workload.framework).every_second_product:
        return EVERY_SECOND_PRODUCT
    return plan.remat or Remat.FULL


def step_inputs(plans: Sequence[Plan], architecture: Architecture, workload: Workload, hardware: Slice) -> StepInputs:
    """The numbers of one step under each plan.

    Raises:
        InsufficientEvidenceError: the architecture, the batch or the sequence is not known.
    """
    require(architecture, workload)
    model = model_inputs(architecture)
    layout = plan_inputs(plans, model, workload)
    work = under_meshes(workload_under_plans(plans, workload, architecture), layout, workload, architecture)
    return StepInputs(model, work, hardware_inputs(hardware, workload), layout)


def require(architecture: Architecture | None, workload: Workload) -> Architecture:
    """The architecture, if it, the batch and the sequence are known.

    Raises:
        InsufficientEvidenceError: names what is missing.
    """
    missing = ["the architecture"] if architecture is None else [*architecture.missing()]
    missing += [name for name in ("global_batch", "sequence_length") if getattr(workload, name) is None]
    if missing or architecture is None:
        where = architecture.name if architecture else "model"
        raise InsufficientEvidenceError(
            f"a prediction needs {', '.join(missing)}", where=where, hint="add what is missing to the experiment"
        )
    return architecture
