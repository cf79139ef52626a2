"""What a step works on, and how the training stack stores and computes it, in numbers."""

import math
import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from asap.levers.state import PAGED
from asap.models import Architecture, Workload, count_parameters
from asap.models.adapters import adapter_parameters, adapter_width
from asap.models.architecture import pattern_length
from asap.plans import Plan
from asap.plans.degrees import workload_under
from asap.prediction.step_model.communication import context_parallel_kind
from asap.prediction.step_model.compute import BACKWARD_MATMUL, KEPT_BYTES, PASSES, graphed_shares
from asap.prediction.step_model.groups import attention_class, precision_class
from asap.prediction.step_model.inputs import PlanInputs, WorkloadInputs
from asap.stacks.kin import kin_of
from asap.stacks.launchers import contract_of
from asap.stacks.registry import by_framework, code_for

GATHERS_LOGITS = ("aa-scaling",)
"""Stacks that gather logits for the loss, and keep gathered activations (Aleph-Alpha/scaling, transformer/model)."""
_TRAINER_FSDP = ("accelerate ddp", "accelerate fsdp", "axolotl fsdp")
"""Frameworks whose loop is Hugging Face's Trainer; what FSDP does counts for plans that shard."""


def accumulates_whole(workload: Workload) -> bool:
    """Whether gradients stay whole between microbatches: the Trainer scatters them in the last alone."""
    return (workload.framework or "").casefold() in _TRAINER_FSDP and workload.sync_each_batch is not True


def is_xla(workload: Workload) -> bool:
    """Whether XLA compiles the step."""
    return kin_of(workload.framework).xla


def splits_residual(workload: Workload) -> bool:
    """Whether devices of the tensor axis hold parts of the residual stream: of its width under XLA, else of the
    sequence (arXiv:2205.05198)."""
    said, table = workload.sequence_parallel, by_framework(workload.framework)
    usual = kin_of(workload.framework).splits_sequence and (not table or table.splits_sequence)
    return usual if said is None else said


def scans_layers(workload: Workload) -> bool:
    """Whether XLA runs the layers as a loop."""
    return is_xla(workload) and workload.scan_layers is not False


def layers_together(workload: Workload, architecture: Architecture) -> int:
    """Of MaxText, whose scan repeats a pattern of layers as one module under one policy (its models/gemma3.py)."""
    return pattern_length(architecture) if scans_layers(workload) else 1


def has_fused_norm(w: Workload) -> bool:
    """Whether RMS norms are one kernel each, as in XLA, Transformer Engine and Apex, on which Megatron stands."""
    apex = kin_of(w.framework).apex and not gathers_logits(w)
    return apex or "rms" in (w.attention or "").casefold()


def gathers_logits(w: Workload) -> bool:
    """Whether the stack gathers logits for the loss and keeps gathered activations."""
    return (w.framework or "").casefold().startswith(GATHERS_LOGITS)


FP32_MASTER = 4.0  # bytes of a parameter in fp32 beside the one that computes
OPTIMIZER_BYTES = {"adafactor": 4.0, "sgd momentum": 4.0, "sgd": 0.0, "lion": 4.0, "muon": 4.0}  # of moments in fp32
OPTIMIZERS = ("adamw", "adam", "adam_pax", *OPTIMIZER_BYTES)
"""Optimizers whose state is known; those of Adam's kind keep two moments."""
FROM_STATE = (
    "parameter_bytes", "gradient_bytes", "gather_bytes", "optimizer_bytes", "paged_bytes", "updated_bytes",
    "sequence_parallel",
)  # fmt: skip
"""Fields that follow from the training state, and from whether residuals are split."""
OF_STATE = ("first_moment", "second_moment", "weight_precision", "optimizer", "sequence_parallel")
"""What a plan says of them."""
HALF = 2.0  # bytes in bf16 or fp16
DDP_BUCKET = 25 * 2.0**20
"""Bytes (``bucket_cap_mb`` of PyTorch's DistributedDataParallel, ``ddp_bucket_cap_mb`` of nanotron)."""
FROZEN_BYTES = {"int8": 1.0, "nf4": 0.516}
"""Bytes of a frozen weight: in 4 bits with constants for each 64, which are quantized in turn (arXiv:2305.14314, 3)."""
DEQUANTIZED_BYTES = 18.0
"""Bytes of HBM in whose time a weight is restored, once for each pass: Llama-3.1 8B in torchtune on an RTX 4090 takes
0.12 s (its README), Qwen-7B in 4 bits of GPTQ on an A100 62 ms (its README, 512 tokens)."""
OPERAND_BYTES = {"bf16": 2.0, "fp8": 1.0, "int8": 1.0, "fp4": 0.5, "fp32": 4.0}  # widths of the formats
GATHERED_LOGIT_BYTES = 16.0
"""PyTorch's own cross entropy: bf16 logits and gradients, fp32 log-probabilities and the gradients of both steps."""
FUSED_LOSS_BYTES = {"fast-llm": 4.0, "llm.c": 2.0}
"""Where one kernel of the stack's own takes the loss of bf16 logits and their gradient: it writes that beside them
(Fast-LLM, ``functional/triton/cross_entropy.py``), or over them (llm.c, ``llmc/fused_classifier.cuh``)."""
EAGER_LOSS_BYTES = 14.0
"""The same where FSDP's stacks compile no loss: logits are gone before their own gradients are there. In torchtitan on
an H100 it took 14 to 15 of the HBM that PyTorch reserves (docs/optimize.md), in the Trainer on an A100 11 of what it
allocates (fms-acceleration, PowerLM-3b with 4 and 8 sequences). Of logits that tensor parallelism splits PyTorch takes
it in single operations (``tensor/parallel/loss.py``): one kernel explains 46.7 of the 71.5 GiB of pytorch#149990."""


def workload_inputs(w: Workload, architecture: Architecture) -> WorkloadInputs:
    """Bytes of operands and of the training state.

    JAX keeps fp32 parameters, or all of its state in bf16 where the workload says so; PyTorch stacks keep bf16
    parameters with an fp32 master copy (ZeRO, arXiv:1910.02054, 3.1).
    """
    kin = kin_of(w.framework)
    operands = OPERAND_BYTES[precision_class(w.precision)]
    master = kin.fp32_master or (contract_of(w.framework).keeps_master and operands <= HALF)
    kernel = attention_class(w.attention) or "flash"
    name = (w.framework or "").casefold()
    gated_eager = architecture.gated_mlp and kin.eager and not w.compiled
    gathers = gathers_logits(w)
    accumulates = w.gradient_precision or ("fp32" if name == "megatron-lm" else "bf16")
    zero = "deepspeed" in name
    usual = "fp32" if kin.fp32_reduction and not zero else "bf16"
    reduced = OPERAND_BYTES[w.gradient_precision if master and w.gradient_precision else usual]
    context = context_parallel_kind(w)
    over_replicas = 0 if w.zero_stage == 3 else w.zero_stage or 0
    narrow = not master and w.weight_precision == "bf16"
    parameter = 2.0 if master or narrow else 4.0
    moments = _moment_bytes(w, HALF if narrow else FP32_MASTER)
    graphed_attention, graphed_mlp = graphed_shares(w)
    inputs = WorkloadInputs(
        batch=w.global_batch or 0,
        sequence=w.sequence_length or 0,
        operand_bytes=operands,
        kept_input_bytes=operands if kin.transformer_engine and operands < HALF else HALF,
        parameter_bytes=parameter,
        gradient_bytes=(OPERAND_BYTES[accumulates] if master else parameter) * _held_gradients(w, architecture),
        reduce_bytes=reduced,
        gather_bytes=(reduced if not over_replicas or gathers else 0.0) + (parameter if over_replicas else 0.0),
        reduction_bucket=DDP_BUCKET if re.search(r"nanotron|\bddp\b", (w.framework or "").casefold()) else np.inf,
        logit_bytes=_logit_bytes(w),
        loss_chunks=_loss_chunks(w, architecture),
        vocab_parallel_loss=float(not gathers),
        xla=float(is_xla(w)),
        scans_layers=float(scans_layers(w)),
        layers_together=float(layers_together(w, architecture)),
        overlaps_reduction=float(kin.overlaps_reduction if w.overlaps_reduction is None else w.overlaps_reduction),
        regathers_activations=float(kin.of_core and not gathers),
        optimizer_bytes=moments + (FP32_MASTER if master else 0.0),
        paged_bytes=moments * (w.optimizer or "").startswith(PAGED),  # CUDA moves them (bitsandbytes, ``get_paged``)
        fused_attention=float(kernel == "flash"),
        score_passes=PASSES[kernel],
        score_bytes=KEPT_BYTES[kernel],
        megatron_softmax=float(kernel == "softmax" and kin.of_core),
        unfused_norm=float(gated_eager and not has_fused_norm(w)),
        routing_passes=_routing_passes(w),
        unfused_glu=float(gated_eager),
        gathers_tokens=float(w.expert_dispatcher == "all_gather"),
        forwards_tokens=float(w.expert_dispatcher == "deepep"),
        zero_stage=float(over_replicas),
        secondary_shards=float(w.secondary_shards or 0),
        reduction_buffers=w.reduction_buffers or 0.0,
        weights_over_tokens=float(kin.weights_over_tokens or (kin.fully_shards and over_replicas == 0)),
        gathers_through_few_ports=float(kin.fully_shards and zero),
        updates_on_host=float(kin.fully_shards),
        accumulates_whole=float(accumulates_whole(w)),
        reduces_each=float(zero),
        keeps_expert_outputs=float(not kin.transformer_engine),
        capacity_factor=w.capacity_factor or 1.0,
        graphed_attention=graphed_attention,
        graphed_mlp=graphed_mlp,
        counts_tokens=float(not is_xla(w) and w.capacity_factor is None),
        overlaps_experts=float(bool(w.overlaps_experts)),
        transformer_engine=float(kin.transformer_engine),
        blocks_launches=float(bool(w.launch_blocking)),
        overlaps_tensor=float(bool(w.overlaps_tensor)),
        rings_context=float(context == "ring"),
        swaps_heads=float(context == "ulysses"),
        sequence_parallel=float(splits_residual(w)),
        experts_over_model=float("model" in w.experts_over),
        experts_over_seq=float("seq" in w.experts_over),
        updated_bytes=parameter,
        trained=1.0,
        backward_products=BACKWARD_MATMUL,
        dequantized_bytes=0.0,
        adapter_width=0.0,
    )
    return inputs if w.adapter_rank is None else _add_adapters(inputs, w, architecture)


def _add_adapters(inputs: WorkloadInputs, w: Workload, architecture: Architecture) -> WorkloadInputs:
    """Frozen weights have no gradients and no state; adapters have both, in fp32 (peft, ``autocast_adapter_dtype``).
    What lies outside of the layers is not quantized (transformers, ``get_keys_to_not_convert``)."""
    counted = count_parameters(architecture)
    trained = adapter_parameters(architecture, w.adapter_rank or 0, w.adapted) / counted.total
    usual = min(float(inputs.parameter_bytes), OPERAND_BYTES.get(w.frozen_precision or "", FP32_MASTER))
    packed = FROZEN_BYTES.get(w.frozen_precision or "")
    held = (
        usual if packed is None else (packed * counted.layers + HALF * (counted.total - counted.layers)) / counted.total
    )
    own, moments = FP32_MASTER * trained, trained * _moment_bytes(w, FP32_MASTER)
    return replace(
        inputs,
        parameter_bytes=held + own,
        gradient_bytes=own,
        reduce_bytes=own,
        gather_bytes=own,
        optimizer_bytes=moments,
        paged_bytes=moments if inputs.paged_bytes else 0.0,
        updated_bytes=own,
        trained=trained,
        backward_products=BACKWARD_MATMUL / 2,
        dequantized_bytes=0.0 if packed is None else DEQUANTIZED_BYTES,
        adapter_width=adapter_width(architecture, w.adapted),
    )


def _held_gradients(w: Workload, architecture: Architecture) -> float:
    """Share of the gradients that is held at once: those of a layer, or of the embedding, where each is used once it is
    there."""
    if not w.optimizer_in_backward:
        return 1.0
    counted = count_parameters(architecture)
    return max(counted.layers / (architecture.layers or 1), counted.total - counted.layers) / counted.total


def _logit_bytes(w: Workload) -> float:
    """What the loss holds for each logit."""
    if fused := FUSED_LOSS_BYTES.get((w.framework or "").casefold()):
        return fused
    if gathers_logits(w):
        return GATHERED_LOGIT_BYTES
    if kin_of(w.framework).fully_shards and w.compiled_loss is False:
        return EAGER_LOSS_BYTES
    return kin_of(w.framework).logit_bytes


def _routing_passes(w: Workload) -> float:
    """HBM passes over a routed copy of a token beside its gather, in the forward pass, of operations in PyTorch:
    rows are padded for grouped products and taken out again, and outputs are cast to fp32, scaled, cast back and added
    up (torchtitan, ``moe/utils.py`` and ``token_dispatcher.py``); torch.compile makes one kernel of the casts."""
    if not kin_of(w.framework).fully_shards:
        return 0.0
    padding, added = 4.0, 3.0
    cast_and_scaled = 2.0 if w.compiled else 10.0
    return padding + cast_and_scaled + added


def _loss_chunks(w: Workload, architecture: Architecture) -> int:
    """Parts of the tokens whose logits exist at a time. Liger's parts have as many logits as all hidden states have
    values (``ops/fused_linear_cross_entropy.py``)."""
    fused = math.ceil((architecture.vocab or 1) / (architecture.d_model or 1)) if w.fused_linear_cross_entropy else 1
    return max(w.loss_chunks or 1, fused)


def workload_under_plans(plans: Sequence[Plan], w: Workload, architecture: Architecture) -> WorkloadInputs:
    """The workload's numbers, as arrays of shape (plans,) where plans say another batch, loss or training state."""
    inputs = workload_inputs(w, architecture)
    if any(plan.loss_chunks for plan in plans):
        now = _loss_chunks(w, architecture)
        chunks = np.array([plan.loss_chunks or now for plan in plans], dtype=float)
        inputs = replace(inputs, loss_chunks=chunks)
    if any(plan.global_batch for plan in plans):
        batch = np.array([plan.global_batch or w.global_batch or 0 for plan in plans], dtype=float)
        inputs = replace(inputs, batch=batch)
    if any(getattr(plan, name) is not None for plan in plans for name in OF_STATE):
        each = [workload_inputs(workload_under(plan, w), architecture) for plan in plans]
        sizes = {name: np.array([getattr(one, name) for one in each], dtype=float) for name in FROM_STATE}
        inputs = replace(inputs, **sizes)
    return inputs


def under_meshes(work: WorkloadInputs, layout: PlanInputs, w: Workload, architecture: Architecture) -> WorkloadInputs:
    """With what a mesh decides: whether FSDP turns weights into fp32, whether the loss is one kernel, a stage of ZeRO
    that follows it, and whether devices that share a sequence hold copies."""
    if kin_of(w.framework).fully_shards:
        split = np.maximum(work.logit_bytes, EAGER_LOSS_BYTES)
        work = replace(work, logit_bytes=np.where(layout.model > 1, split, work.logit_bytes))
    if w.fsdp_upcasts:
        wide = workload_inputs(w.model_copy(update={"weight_precision": None}), architecture)
        sizes = {name: np.where(layout.fsdp > 1, getattr(wide, name), getattr(work, name)) for name in FROM_STATE}
        work = replace(work, **sizes)
    shards_parameters = code_for(w.framework, "shards_parameters")
    if shards_parameters is None:
        widely = work.weights_over_tokens * (layout.fsdp > 1)
        return replace(work, weights_over_tokens=widely) if w.zero_stage == 0 else work
    sharded = shards_parameters(layout.fsdp, layout.replica * layout.dcn_replica, layout.model, w.zero_stage or 0)
    stage = np.where(sharded, 0.0, min(w.zero_stage or 0, 2))
    gathered = np.where(stage > 0, work.updated_bytes, work.reduce_bytes)
    return replace(work, zero_stage=stage, weights_over_tokens=1.0 * sharded, gather_bytes=gathered)


def _moment_bytes(w: Workload, usual: float) -> float:
    """Bytes a parameter of an optimizer that keeps ``usual`` bytes a moment where nothing else is said of it."""
    said_of_all = OPTIMIZER_BYTES.get((w.optimizer or "adam").casefold().removeprefix(f"{PAGED} "))
    if said_of_all is not None:
        return said_of_all * usual / FP32_MASTER
    moments = (w.first_moment_precision, w.second_moment_precision)
    return sum(usual if said is None else OPERAND_BYTES[precision_class(said)] for said in moments)
