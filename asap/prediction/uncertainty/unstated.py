"""What a run does not say, and what it may be: the prediction is a mixture over it, and its spread widens the interval.

Each setting is varied alone. Weights are shares of published sources.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from asap.hardware.slices import Slice
from asap.models import Architecture, Workload
from asap.models.workload import ContextParallel
from asap.plans import Plan, Remat
from asap.prediction.step_model.communication import context_parallel_kind
from asap.prediction.step_model.groups import is_kernel_open
from asap.stacks.kin import kin_of
from asap.stacks.registry import by_framework

Vector = NDArray[np.float64]

RECOMPUTES_ALL = 0.5
"""That a run recomputes its layers although less would fit: of the published runs that say what they recompute, where
keeping everything would fit, mean over ten sources (0.51)."""
KEEPS_SCORES_IN_HBM = 0.15
"""That a PyTorch stack with an option for flash attention leaves it off (Megatron-LM, ``--use-flash-attn``; one of the
seven sources that do not say). Of a program of the user's own, it counts for HBM alone."""
NEWER_ATTENTION = 0.34
"""That one of PyTorch's FSDP stacks on Hopper has FlashAttention-3 or cuDNN's kernel, not FlashAttention-2: of the
published runs that say theirs, mean over five sources."""
SLOWER_NETWORKS = {0.5: 0.15, 0.25: 0.15}
"""Rate between nodes over that of the maker's own machine → how often. Of six sources that say theirs, one has the
maker's, and the others a half to an eighth; those who do not say are taken to have it seven times in ten."""
SHARDS_OPTIMIZER = 0.5
"""That plain data parallelism shards the optimizer's state (ZeRO 1). Judgement: HBM of runs that do not say."""
CONTEXT_PARALLEL: tuple[ContextParallel, ...] = ("all_gather", "ring", "ulysses")
"""Ways of context parallelism, the first as it is read; equally likely where the stack has none of its own."""
OVERLAPS_TENSOR = 0.48
"""That a run of Megatron-Core hides collectives of tensor parallelism behind products: of the published runs that say
so, mean over seven sources."""
COMPILES = 0.57
"""That PyTorch compiles the model: of the published runs of FSDP's stacks that say so, mean over ten sources."""
FORWARDS_TOKENS = 0.38
"""That a run of Megatron-Core sends a token once to a node (DeepEP, HybridEP) and not once to each expert: of the
published mixtures that say so, mean over eight sources."""
OVERLAPS_EXPERTS = 0.11
"""That it hides all-to-alls behind another microbatch: likewise, over seven sources."""
VOCABULARIES = {32_768: 0.25, 202_048: 0.25}
"""Tokens of a vocabulary that is not stated → how often: what is in the middle of the lower and of the upper quarter of
the 304 published models in asap/models/catalogue.jsonl, whose median is assumed."""


@dataclass(frozen=True)
class Alternative:
    """Another reading of the same runs, and how likely it is; ``of_memory`` where it counts for HBM alone."""

    setting: str
    told_by: str
    weight: float
    plans: tuple[Plan, ...]
    workload: Workload
    hardware: Slice
    model: Architecture | None = None
    of_memory: bool = False


def alternatives(
    plans: Sequence[Plan], inferred: Sequence[bool], workload: Workload, hardware: Slice, network_stated: bool = False,
    model: Architecture | None = None,
) -> list[Alternative]:  # fmt: skip
    """Other readings of plans of one run.

    Args:
        plans: with a policy of rematerialisation.
        inferred: for each, whether that policy is inferred and not stated.
        workload: with what is known.
        hardware: with its network.
        network_stated: whether its rate is of this machine, and not of the maker's own.
        model: what is trained; ``None`` where all of it is stated.
    """
    found, chosen, kin = [], tuple(plans), kin_of(workload.framework)

    def add(
        setting: str, told_by: str, weight: float, said: dict[str, object] | None = None, **changes: object
    ) -> None:
        read = workload.model_copy(update=said)
        parts = {"plans": chosen, "workload": read, "hardware": hardware, "model": model} | changes
        found.append(Alternative(setting, told_by, weight, **parts))  # pyright: ignore[reportArgumentType]

    table = by_framework(workload.framework)
    own_code = table is not None and table.recompute_unsaid is not None
    if any(inferred) and not kin.transformer_engine:
        policies = [(Remat.FULL, RECOMPUTES_ALL), *([(Remat.NONE, 1 - RECOMPUTES_ALL)] if own_code else [])]
        for policy, weight in policies:
            read = zip(chosen, inferred, strict=True)
            plans = tuple(one.model_copy(update={"remat": policy}) if guessed else one for one, guessed in read)
            add("recomputation", "remat=… in the plan", weight, plans=plans, of_memory=policy is Remat.NONE)
    if (kin.apex or own_code) and is_kernel_open(workload) and hardware.chip.kind == "gpu":
        kernel, told_by = "eager" if own_code else "fused softmax", "the kernel in the configuration"
        add("attention kernel", told_by, KEEPS_SCORES_IN_HBM, {"attention": kernel}, of_memory=own_code)
    if kin.fully_shards and workload.attention is None and hardware.chip.ported_attention < 1:
        add("attention kernel", "the kernel in the configuration", NEWER_ATTENTION, {"attention": "flash_attention_3"})
    if workload.zero_stage is None and not kin.shards_state and any(plan.degree("replica") > 1 for plan in chosen):
        add("ZeRO stage", "the ZeRO stage in the configuration", SHARDS_OPTIMIZER, {"zero_stage": 1})
    if context_parallel_kind(workload) is None and any(plan.degree("seq") > 1 for plan in chosen):
        share = 1 / len(CONTEXT_PARALLEL)
        for kind in CONTEXT_PARALLEL[1:]:
            add("context parallelism", "context_parallel in the experiment", share, {"context_parallel": kind})
    if any(plan.degree("model") > 1 for plan in chosen):
        if (usual := kin.sequence_parallel_share) is not None and workload.sequence_parallel is None:
            other, weight = (False, 1 - usual) if kin.splits_sequence else (True, usual)
            add("sequence parallelism", "sequence_parallel", weight, {"sequence_parallel": other})
        if kin.transformer_engine and workload.overlaps_tensor is None:
            add("overlap of tensor parallelism", "overlaps_tensor", OVERLAPS_TENSOR, {"overlaps_tensor": True})
    if kin.fully_shards and workload.compiled is None:
        add("compilation", "compiled", COMPILES, {"compiled": True})
    if kin.transformer_engine and any(plan.degree("expert") > 1 for plan in chosen):
        if workload.expert_dispatcher is None:
            add("dispatch of tokens", "expert_dispatcher", FORWARDS_TOKENS, {"expert_dispatcher": "deepep"})
        if workload.overlaps_experts is None:
            add("overlap of all-to-alls", "overlaps_experts", OVERLAPS_EXPERTS, {"overlaps_experts": True})
    if model is not None and model.vocab_assumed:
        for tokens, weight in VOCABULARIES.items():
            add("vocabulary", "model.vocab", weight, model=model.model_copy(update={"vocab": tokens}))
    stated = network_stated or hardware.chip.network.stated
    if not stated and hardware.chip.kind == "gpu" and hardware.domains > 1:
        network = hardware.chip.network
        for factor, weight in SLOWER_NETWORKS.items():
            update = {"network": network.model_copy(update={"bandwidth": network.bandwidth * factor})}
            slower = replace(hardware, chip=hardware.chip.model_copy(update=update))
            add("network between nodes", "--network", weight, hardware=slower)
    return found


@dataclass(frozen=True)
class Mixture:
    """Of each step: e-folds by which the mean of the readings lies above the first one, and their spread by setting."""

    shift: Vector
    spreads: dict[str, Vector]

    @property
    def spread(self) -> Vector:
        """Standard deviation of ln(step) over all settings."""
        return np.sqrt(sum((np.square(value) for value in self.spreads.values()), np.zeros_like(self.shift)))


def mixture_of(base: Vector, read: Sequence[tuple[str, float | Vector, Vector]]) -> Mixture:
    """The mixture.

    Args:
        base: ln(step) of the first reading, shape (cases,).
        read: for each alternative its setting, its weight, and ln(step).
    """
    mean: dict[str, Vector] = {}
    square: dict[str, Vector] = {}
    for setting, weight, value in read:
        mean[setting] = mean.get(setting, np.zeros_like(base)) + weight * (value - base)
        square[setting] = square.get(setting, np.zeros_like(base)) + weight * np.square(value - base)
    spreads = {name: np.sqrt(np.maximum(square[name] - np.square(mean[name]), 0.0)) for name in mean}
    return Mixture(sum(mean.values(), np.zeros_like(base)), spreads)
