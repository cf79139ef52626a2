"""What Megatron-LM refuses, needs beside a plan, and has to change with it."""

import math
import re
from collections.abc import Mapping

from asap.core.errors import PlanError
from asap.plans.plan import Plan
from asap.plans.remat import RecomputedModules, Remat, recomputes_layers
from asap.stacks.megatron.releases import Changes, is_set
from asap.stacks.megatron.stages import COUNTED, FIRST_AND_LAST, LAYERS_EACH, PIPELINE, VIRTUAL, still_counted
from asap.stacks.registry import spec

PRECISION_AWARE = "use_precision_aware_optimizer"
CHECKPOINTS, _OF_FSDP, _USUAL = "ckpt_format", "fsdp_dtensor", "torch_dist"
_FSDP, _DISTRIBUTED, _SEQUENCE = "use_megatron_fsdp", "use_distributed_optimizer", "sequence_parallel"
_OF_LEVELS, _OVERLAPPED = "hierarchical_context_parallel_sizes", "overlap_moe_expert_parallel_comm"
_BIAS, _NO_BIAS = "add_bias_linear", "disable_bias_linear"
_DROPOUT = 0.1

Settings = Mapping[str, object]


def check(plan: Plan, current: Settings) -> None:
    """Check a plan beside the arguments as they are, Megatron-LM's or those of what runs on its core.

    Raises:
        PlanError: Megatron-LM refuses it.
    """
    refused = next((reason for reason, holds in _refusals(plan, current).items() if holds), None)
    if refused is not None:
        raise PlanError(f"Megatron-LM refuses it: {refused}")


def required(plan: Plan, current: Settings) -> dict[str, bool]:
    """Options that a plan needs beside those that say it.

    Args:
        plan: what to run.
        current: the arguments as they are.
    """
    mixture = plan.degree("expert") > 1 or is_set(current, "num_experts")
    needed = [PRECISION_AWARE, _DISTRIBUTED] if _is_precision_aware(plan) else []
    needed += [_SEQUENCE] if mixture and plan.degree("model") > 1 else []
    return {option: True for option in needed if not is_set(current, option)}


def of_start(plan: Plan, global_batch: int | None, sequence: int) -> Changes:
    """What a plan is predicted with where nothing runs yet: a distributed optimizer, bf16, sequence parallelism.

    Args:
        plan: what to run.
        global_batch: sequences in a step.
        sequence: tokens in a sequence.
    """
    batch: Changes = {"global_batch_size": str(global_batch)} if global_batch else {}
    split: Changes = {_SEQUENCE: True} if plan.degree("model") > 1 else {}
    return {**batch, "seq_length": str(sequence), "bf16": True, _DISTRIBUTED: True, **split}


def _refusals(plan: Plan, current: Settings) -> dict[str, bool]:
    """Reasons, and whether they hold."""
    moved, context, staged = "optimizer" in plan.offload, plan.degree("seq"), plan.degree("stage") > 1
    fsdp2 = is_set(current, "use_torch_fsdp2")
    fp8_weights = is_set(current, "fp8_param_gather") and current.get("fp8_recipe", "delayed") != "delayed"
    graphs = current.get("cuda_graph_impl") in ("local", "transformer_engine")
    overlapped = is_set(current, _OVERLAPPED) and plan.degree("expert") > 1
    sizes = re.findall(r"\d+", str(current[_OF_LEVELS])) if is_set(current, _OF_LEVELS) else [context]
    levels = math.prod(map(int, sizes))
    whole_layers = recomputes_layers(plan.remat)
    return {
        **_refused_modules(plan, current, graphs),
        "PyTorch's FSDP2 goes with no pipeline": fsdp2 and staged,
        "PyTorch's FSDP2 goes with no expert parallelism": fsdp2 and plan.degree("expert") > 1,
        "PyTorch's FSDP2 does not go with a precision-aware optimizer": fsdp2 and _is_precision_aware(plan),
        "the optimizer is offloaded beside FP8 parameters with delayed scaling only": moved and fp8_weights,
        "CUDA graphs of layers do not go with full recomputation": graphs and whole_layers,
        "CUDA graphs of layers compute no attention with dropout again": (
            graphs and plan.remat is Remat.SELECTIVE and has_attention_dropout(current)
        ),
        f"{_OVERLAPPED} goes with an interleaved pipeline only": overlapped and staged and plan.pipeline_repeats == 1,
        f"{_OVERLAPPED} does not go with full recomputation": overlapped and whole_layers,
        f"{_OF_LEVELS} multiplies to {levels}, not to {context}": levels != context,
    }


def _refused_modules(plan: Plan, current: Settings, graphs: bool) -> dict[str, bool]:
    """Reasons against recomputed modules, where the arguments say the model."""
    modules = {*plan.remat.modules} if isinstance(plan.remat, RecomputedModules) else set[str]()
    said = "num_layers" in current
    in_fp8 = is_set(current, "fp8") or is_set(current, "fp8_format")
    delayed = in_fp8 and current.get("fp8_recipe", "delayed") == "delayed"
    return {
        "moe_act is recomputed with --moe-grouped-gemm only": (
            "moe_act" in modules and said and not is_set(current, "moe_grouped_gemm")
        ),
        "mla_up_proj is a part of latent attention only": (
            "mla_up_proj" in modules and said and not is_set(current, "multi_latent_attention")
        ),
        "shared_experts are not recomputed beside --moe-shared-expert-overlap": (
            "shared_experts" in modules and is_set(current, "moe_shared_expert_overlap")
        ),
        "FP8 with delayed scaling recomputes neither moe_act nor layernorm": (
            bool({"moe_act", "layernorm"} & modules) and delayed
        ),
        "CUDA graphs of layers recompute no part of attention": bool({"core_attn", "mla_up_proj"} & modules) and graphs,
        "CUDA graphs of layers recompute no MLP and no experts with hidden dropout": (
            bool({"mlp", "moe"} & modules) and graphs and _has_dropout(current, "hidden_dropout")
        ),
        f"{_OVERLAPPED} does not go with moe among recompute_modules": "moe" in modules
        and is_set(current, _OVERLAPPED),
    }


def has_attention_dropout(current: Settings) -> bool:
    """Whether attention has dropout, as it has by default."""
    return _has_dropout(current, "attention_dropout")


def _has_dropout(current: Settings, which: str) -> bool:
    return str(current.get(which, _DROPOUT)) not in ("0", "0.0")


def has_biased_experts(current: Settings) -> bool:
    """Whether experts have biases, as they do by default: tensor parallelism does not split these."""
    biased = is_set(current, _BIAS) if _BIAS in current else not is_set(current, _NO_BIAS)
    return biased and is_set(current, "num_experts")


def _is_precision_aware(plan: Plan) -> bool:
    """Whether a plan has an optimizer that Megatron-LM calls so: with moments on the host, or of less than fp32."""
    return bool("optimizer" in plan.offload or plan.first_moment or plan.second_moment)


def invalidated(plan: Plan, changed: Changes, wanted: Changes, current: Settings, layers: int | None = None) -> Changes:
    """Arguments on record that Megatron-LM refuses under a plan, to be left out.

    Args:
        plan: what to run.
        changed: arguments that change for it.
        wanted: all arguments that say it.
        current: those on record.
        layers: decoder layers.
    """
    split, in_rounds = plan.degree("model") > 1, plan.degree("stage") == 1 or plan.pipeline_repeats > 1
    overlaps = str(wanted.get("expert_model_parallel_size", 1)) != "1" and not recomputes_layers(plan.remat)
    moved = any(key in changed for key in (PIPELINE, VIRTUAL, LAYERS_EACH))
    found = [key for key in FIRST_AND_LAST if key not in wanted] if moved else []
    found += [] if not moved or still_counted(plan, current, layers) else COUNTED
    found += [] if overlaps and in_rounds else [_OVERLAPPED, "delay_wgrad_compute"]
    found += [] if split else ["tp_comm_overlap"]
    if not split or wanted.get(_SEQUENCE) or not (plan.remat is None or recomputes_layers(plan.remat)):
        found.append("distribute_saved_activations")
    if plan.degree("stage") == 1 or plan.pipeline_repeats == 1:
        found.append("overlap_param_gather_with_optimizer_step")
    return {key: False for key in found if is_set(current, key)}


def unsplit(plan: Plan, current: Settings) -> dict[str, bool]:
    """Sequence parallelism, to be left out without tensor parallelism; Megatron-LM does so itself, NeMo does not."""
    return {_SEQUENCE: False} if plan.degree("model") == 1 and is_set(current, _SEQUENCE) else {}


def checkpoints(wanted: Changes, current: Settings) -> Changes:
    """The format of checkpoints, of which Megatron-FSDP takes one alone, and nothing else takes that one."""
    shards = wanted.get(_FSDP, is_set(current, _FSDP))
    if shards and current.get(CHECKPOINTS) != _OF_FSDP:
        return {CHECKPOINTS: _OF_FSDP}
    return {CHECKPOINTS: _USUAL} if not shards and current.get(CHECKPOINTS) == _OF_FSDP else {}


def remarks(changed: Changes, current: Settings) -> str:
    """What arguments need that are new to a run, as a comment of a shell."""
    new = [key for key, value in changed.items() if value is not False and current.get(key) is None]
    found = [f"{key.replace('_', '-')} {said}" for key in new if (said := spec("megatron").remarks.get(key))]
    return f"  # {'; '.join(found)}" if found else ""
