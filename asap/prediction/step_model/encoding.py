"""Architecture, Workload, Slice and Plan as :class:`StepInputs`."""

import math
import re
from collections.abc import Sequence
from dataclasses import fields, replace

import numpy as np

from asap.core.errors import InsufficientEvidenceError
from asap.hardware.slices import Slice
from asap.models import Architecture, Workload
from asap.models.layer_pattern import pattern_length
from asap.plans import AXES, Plan, Remat
from asap.plans.deepspeed.settings import shards_parameters
from asap.plans.launchers import stack_of
from asap.plans.workload import workload_under
from asap.prediction.step_model.context_parallelism import context_parallel_kind
from asap.prediction.step_model.groups import (
    attention_class,
    framework_class,
    kernel_of,
    precision_class,
    runs_older_attention,
)
from asap.prediction.step_model.inputs import HardwareInputs, ModelInputs, PlanInputs, StepInputs, WorkloadInputs
from asap.prediction.step_model.remat_shares import RematShares, remat_shares

FP32_MASTER = 4.0
OPTIMIZER_BYTES = {"adafactor": 4.0, "sgd": 4.0, "lion": 4.0, "muon": 4.0}
OPTIMIZERS = ("adamw", "adam", "adam_pax", *OPTIMIZER_BYTES)
"""Optimizers whose state is known; those of Adam's kind keep two moments."""
STATE_BYTES = ("parameter_bytes", "gradient_bytes", "gather_bytes", "optimizer_bytes")
"""Fields that follow from the training state."""
OF_STATE = ("first_moment", "second_moment", "weight_precision", "optimizer")
"""What a plan says of the training state."""
HALF = 2.0
DDP_BUCKET = 25 * 2.0**20
"""Bytes (``bucket_cap_mb`` of PyTorch's DistributedDataParallel, ``ddp_bucket_cap_mb`` of nanotron)."""
OPERAND_BYTES = {"bf16": 2.0, "fp8": 1.0, "int8": 1.0, "fp4": 0.5, "fp32": 4.0}
LOGIT_BYTES = {"maxtext": 2.0, "jax": 2.0, "fsdp": 4.0, "nemo": 6.0}
EAGER_LOGIT_BYTES = 12.0
"""Bytes per logit: XLA fuses the loss over bf16 logits, fused cross entropy adds a gradient in place; Megatron-Core
takes bf16 logits, and softmax and gradient share one fp32 copy (``core/tensor_parallel/cross_entropy.py``);
older Megatron keeps bf16 logits and gradients and fp32 copies of both."""
GATHERED_LOGIT_BYTES = 16.0
"""PyTorch's own cross entropy: bf16 logits and gradients, fp32 log-probabilities and the gradients of both steps."""
GATHERS_LOGITS = ("aa-scaling",)
"""Stacks that gather logits for the loss, and keep gathered activations (Aleph-Alpha/scaling, transformer/model)."""
TRAINER_FSDP = ("accelerate fsdp", "axolotl fsdp")
"""Frameworks whose loop is Hugging Face's Trainer, on FSDP."""
SLOWEST_HOST_LINK = 1.6e10
"""Bytes/s to the host in one direction, where a chip's maker publishes none: that of the slowest chip that has one."""
FIRST_FLASH = 0.5
"""Rate of FlashAttention over that of FlashAttention-2, "around 2× speedup" (arXiv:2307.08691, abstract)."""
SCORE_PASSES = {"flash": 0.0, "softmax": 3.0, "unfused": 6.0}
SCORE_BYTES = {"flash": 0.0, "softmax": 5.0, "unfused": 14.0}
"""Bytes per score: fused, input and output of the softmax in bf16 and a dropout mask (arXiv:2205.05198, section 4);
unfused, three fp32 copies and a bf16 one."""


def step_inputs(plans: Sequence[Plan], architecture: Architecture, workload: Workload, hardware: Slice) -> StepInputs:
    """The numbers of one step under each plan.

    Raises:
        InsufficientEvidenceError: the architecture, the batch or the sequence is not known.
    """
    require(architecture, workload)
    model = model_inputs(architecture)
    layout = plan_inputs(plans, model, workload)
    work = workload_under_plans(plans, workload, architecture)
    return StepInputs(model, under_meshes(work, layout, workload), hardware_inputs(hardware, workload), layout)


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


def model_inputs(a: Architecture) -> ModelInputs:
    """Widths of the decoder; MLA by its own projections (arXiv:2405.04434, section 2.1)."""
    layers, width, heads = a.layers or 0, a.d_model or 0, a.heads or 0
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
        moe_layers=a.moe_layers,
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
        tied_embeddings=float(a.tied_embeddings),
        window=a.sliding_window or 0,
        local_layers=local,
    )


def workload_inputs(w: Workload, architecture: Architecture) -> WorkloadInputs:
    """Bytes of operands and of the training state.

    JAX keeps fp32 parameters, or all of its state in bf16 where the workload says so; PyTorch stacks keep bf16
    parameters with an fp32 master copy (ZeRO, arXiv:1910.02054, 3.1).
    """
    framework = framework_class(w.framework)
    operands = OPERAND_BYTES[precision_class(w.precision)]
    master = framework in (None, "megatron", "nemo") or (stack_of(w.framework) == "deepspeed" and operands <= HALF)
    kernel = attention_class(w.attention) or "flash"
    name = (w.framework or "").casefold()
    gated_eager = architecture.gated_mlp and framework in (None, "megatron", "fsdp") and not w.compiled
    gathers = gathers_logits(w)
    accumulates = w.gradient_precision or ("fp32" if name == "megatron-lm" else "bf16")
    reduced = OPERAND_BYTES[
        w.gradient_precision
        if master and w.gradient_precision
        else "fp32"
        if framework == "megatron" and "deepspeed" not in name
        else "bf16"
    ]
    context = context_parallel_kind(w)
    over_replicas = 0 if w.zero_stage == 3 else w.zero_stage or 0
    narrow = not master and w.weight_precision == "bf16"
    parameter = 2.0 if master or narrow else 4.0
    sharded = w.sequence_parallel if w.sequence_parallel is not None else framework in ("nemo", "maxtext", "fsdp")
    return WorkloadInputs(
        batch=w.global_batch or 0,
        sequence=w.sequence_length or 0,
        operand_bytes=operands,
        kept_input_bytes=operands if framework == "nemo" and operands < HALF else HALF,
        parameter_bytes=parameter,
        gradient_bytes=OPERAND_BYTES[accumulates] if master else parameter,
        reduce_bytes=reduced,
        gather_bytes=(reduced if not over_replicas or gathers else 0.0) + (parameter if over_replicas else 0.0),
        reduction_bucket=DDP_BUCKET if reduces_in_buckets(w) else np.inf,
        logit_bytes=GATHERED_LOGIT_BYTES if gathers else LOGIT_BYTES.get(framework or "", EAGER_LOGIT_BYTES),
        loss_chunks=w.loss_chunks or 1,
        vocab_parallel_loss=float(not gathers),
        xla=float(_is_xla(w)),
        scans_layers=float(_scans_layers(w)),
        layers_together=float(_layers_together(w, architecture)),
        overlaps_reduction=float(framework != "megatron"),
        regathers_activations=float(framework in ("megatron", "nemo") and not gathers),
        optimizer_bytes=_moment_bytes(w, HALF if narrow else FP32_MASTER) + (FP32_MASTER if master else 0.0),
        fused_attention=float(kernel == "flash"),
        score_passes=SCORE_PASSES[kernel],
        score_bytes=SCORE_BYTES[kernel],
        unfused_norm=float(gated_eager and not has_fused_norm(w)),
        unfused_glu=float(gated_eager),
        forwards_tokens=float(framework == "nemo"),
        zero_stage=float(over_replicas),
        weights_over_tokens=float(framework == "maxtext" or (framework == "fsdp" and over_replicas == 0)),
        gathers_through_one_port=float(framework == "fsdp" and "deepspeed" in name),
        updates_on_host=float(framework == "fsdp"),
        accumulates_whole=float(name in TRAINER_FSDP and w.sync_each_batch is not True),
        capacity_factor=w.capacity_factor or 1.0,
        graphs_layers=float(w.cuda_graphs in ("layer", "step")),
        rings_context=float(context == "ring"),
        swaps_heads=float(context == "ulysses"),
        sequence_parallel=float(sharded),
        experts_over_model=float("model" in w.experts_over),
        experts_over_seq=float("seq" in w.experts_over),
    )


def _moment_bytes(w: Workload, usual: float) -> float:
    """Bytes a parameter of an optimizer that keeps ``usual`` bytes a moment where nothing else is said of it."""
    said_of_all = OPTIMIZER_BYTES.get((w.optimizer or "adam").casefold())
    if said_of_all is not None:
        return said_of_all * usual / FP32_MASTER
    moments = (w.first_moment_precision, w.second_moment_precision)
    return sum(usual if said is None else min(OPERAND_BYTES[precision_class(said)], usual) for said in moments)


def _layers_together(workload: Workload, architecture: Architecture) -> int:
    """Of MaxText, whose scan repeats a pattern of layers as one module under one policy (its models/gemma3.py)."""
    return pattern_length(architecture) if _scans_layers(workload) else 1


def _is_xla(workload: Workload) -> bool:
    return framework_class(workload.framework) in ("jax", "maxtext")


def _scans_layers(workload: Workload) -> bool:
    return _is_xla(workload) and workload.scan_layers is not False


def workload_under_plans(plans: Sequence[Plan], w: Workload, architecture: Architecture) -> WorkloadInputs:
    """The workload's numbers, as arrays of shape (plans,) where plans say another batch, loss or training state."""
    inputs = workload_inputs(w, architecture)
    if any(plan.loss_chunks for plan in plans):
        chunks = np.array([plan.loss_chunks or w.loss_chunks or 1 for plan in plans], dtype=float)
        inputs = replace(inputs, loss_chunks=chunks)
    if any(plan.global_batch for plan in plans):
        batch = np.array([plan.global_batch or w.global_batch or 0 for plan in plans], dtype=float)
        inputs = replace(inputs, batch=batch)
    if any(getattr(plan, name) for plan in plans for name in OF_STATE):
        each = [workload_inputs(workload_under(plan, w), architecture) for plan in plans]
        sizes = {name: np.array([getattr(one, name) for one in each], dtype=float) for name in STATE_BYTES}
        inputs = replace(inputs, **sizes)
    return inputs


def under_meshes(work: WorkloadInputs, layout: PlanInputs, w: Workload) -> WorkloadInputs:
    """With what of ZeRO a mesh decides: DeepSpeed has one stage, and with its third one replicas hold copies."""
    if stack_of(w.framework) != "deepspeed":
        return work
    sharded = shards_parameters(layout.fsdp, layout.replica * layout.dcn_replica, layout.model, w.zero_stage or 0)
    stage = np.where(sharded, 0.0, min(w.zero_stage or 0, 2))
    gathered = np.where(stage > 0, work.parameter_bytes, work.reduce_bytes)
    return replace(work, zero_stage=stage, weights_over_tokens=1.0 * sharded, gather_bytes=gathered)


def has_fused_norm(w: Workload) -> bool:
    """Whether RMS norms are one kernel each, as in XLA, Transformer Engine and Apex, on which Megatron stands."""
    apex = framework_class(w.framework) == "megatron" and not gathers_logits(w)
    return apex or "rms" in (w.attention or "").casefold()


def reduces_in_buckets(w: Workload) -> bool:
    """Whether replicas are PyTorch's DistributedDataParallel."""
    return re.search(r"nanotron|\bddp\b", (w.framework or "").casefold()) is not None


def gathers_logits(w: Workload) -> bool:
    """Whether the stack gathers logits for the loss and keeps gathered activations."""
    return (w.framework or "").casefold().startswith(GATHERS_LOGITS)


def hardware_inputs(hardware: Slice, workload: Workload) -> HardwareInputs:
    """Rates of one JAX device."""
    chip, share = hardware.chip, hardware.chip.devices
    half = chip.peak_flops.get("bf16") or chip.peak_flops["fp16"]
    peak = chip.peak_flops.get(precision_class(workload.precision), half)
    ported = runs_older_attention(workload.attention, workload.framework, chip.name)
    kernel = FIRST_FLASH if kernel_of(workload, chip.kind) == "flash-1" else 1.0
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
        peak_attention=half / share * kernel * (chip.ported_attention if ported else 1.0),
        hbm_bytes=chip.device_capacity,
        hbm_bandwidth=chip.hbm_bandwidth / share,
        host_bandwidth=(chip.host_bandwidth or SLOWEST_HOST_LINK) / share,
        host_bytes=(chip.host_memory or math.inf) / share,
        link_bandwidth=link / share,
        torus_axes=max(len(used), 1),
        **dict(zip(("torus_x", "torus_y", "torus_z"), sides, strict=True)),
        **dict(zip(("links_x", "links_y", "links_z"), links, strict=True)),
        scaleup_domain=domain,
        link_latency=latency,
        network_bandwidth=chip.network.bandwidth / share,
        network_latency=chip.network.latency,
    )


def plan_inputs(plans: Sequence[Plan], model: ModelInputs, workload: Workload) -> PlanInputs:
    """Plans as arrays of shape (plans,).

    A plan that does not say what it recomputes is taken to recompute everything. Microbatches that are unknown are as
    many as the stages in MaxText's pipeline (its configs/types.py), and hold one sequence each in another; else there
    is one microbatch.
    """
    replica, data, seq, tensor, expert, stage = np.array([plan.ici.degrees for plan in plans], dtype=float).T
    far = dict(zip(AXES, np.array([plan.dcn.degrees for plan in plans], dtype=float).T, strict=True))
    shards = replica * data * expert * far["replica"] * far["data"] * far["expert"]
    stages = stage * far["stage"]
    microbatches = np.array([plan.microbatches or 0 for plan in plans])
    batch = np.array([plan.global_batch or workload.global_batch or 0 for plan in plans])
    maxtext = framework_class(workload.framework) == "maxtext"
    unknown = np.where(stages > 1, stages if maxtext else np.maximum(batch / shards, 1.0), 1.0)
    shares = [remat_shares(plan.remat or Remat.FULL, model, _is_xla(workload)) for plan in plans]
    return PlanInputs(
        replica=replica, data=data, seq=seq * far["seq"], model=tensor * far["model"], expert=expert * far["expert"],
        stage=stage, dcn_replica=far["replica"], dcn_data=far["data"], dcn_stage=far["stage"],
        microbatches=np.where(microbatches > 0, microbatches, unknown),
        pipeline_repeats=np.where(stages > 1, [plan.pipeline_repeats for plan in plans], 1).astype(float),
        **{field.name: np.array([getattr(share, field.name) for share in shares]) for field in fields(RematShares)},
        host_optimizer=np.array(["optimizer" in plan.offload for plan in plans], dtype=float),
        host_parameters=np.array(["parameters" in plan.offload for plan in plans], dtype=float),
        host_activations=np.array([plan.moves_inputs for plan in plans], dtype=float),
    )  # fmt: skip
