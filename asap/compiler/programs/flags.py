"""Compiler flags of a run, and MaxText's settings for it under a plan."""

import os
from collections.abc import Mapping
from typing import Any

import yaml

from asap.core.errors import InsufficientEvidenceError
from asap.core.text import REDACTED
from asap.experiments import Experiment
from asap.flags.environment import FLAG_VARIABLES, MAXTEXT_KEY
from asap.flags.table import flag_group
from asap.plans import Plan
from asap.stacks.maxtext.overrides import to_overrides

FLAGS_VARIABLE = FLAG_VARIABLES[0]

_OVERLAP = (
    "--xla_tpu_enable_async_collective_fusion=true",
    "--xla_tpu_enable_async_collective_fusion_fuse_all_gather=true",
    "--xla_tpu_enable_async_collective_fusion_multiple_steps=true",
    "--xla_tpu_overlap_compute_collective_tc=true",
    "--xla_enable_async_all_gather=true",
)
_DATA_PARALLEL = (
    "--xla_tpu_enable_data_parallel_all_reduce_opt=true",
    "--xla_tpu_data_parallel_opt_different_sized_ops=true",
)
_NO_WINDOWED_EINSUM = "--xla_jf_spmd_threshold_for_windowed_einsum_mib=1000000"
_NO_BUNDLE_COST_MODEL = ("--xla_tpu_use_bundle_aware_cost_model_for_fusions=false",)
"""By default the compiler schedules the machine code of every fusion that it considers: an 8B decoder with sequences of
8192 did not compile for v6e within 15 minutes. Without, it took five to twelve (two shared cores)."""

RECOMMENDED: Mapping[str, tuple[str, ...]] = {
    "v4": ("--xla_enable_async_all_gather=true", _NO_WINDOWED_EINSUM),
    "v5e": (*_DATA_PARALLEL, *_OVERLAP, _NO_WINDOWED_EINSUM),
    "v5p": (
        *_DATA_PARALLEL,
        *_OVERLAP,
        "--xla_tpu_megacore_fusion_allow_ags=false",
        "--xla_enable_async_collective_permute=true",
        "--xla_tpu_enable_ag_backward_pipelining=true",
        _NO_WINDOWED_EINSUM,
    ),
    "v6e": ("--xla_tpu_scoped_vmem_limit_kib=98304", *_OVERLAP, _NO_WINDOWED_EINSUM, *_NO_BUNDLE_COST_MODEL),
    "tpu7x": (_NO_WINDOWED_EINSUM,),
}
"""MaxText: configs/tpu/{v4,v5e,v5p}/*.sh and benchmarks/xla_flags_library.py (DENSE_VMEM_LIMIT_FLAG, CF_FOR_ALL_GATHER,
DISABLE_COLLECTIVE_MATMUL, DISABLE_BUNDLE_AWARE_COST_MODEL), https://github.com/AI-Hypercomputer/maxtext. Where
something is kept in host memory, the group ``host_offload`` of :mod:`asap.flags` comes on top."""


def compiler_flags(chip: str, environment: Mapping[str, str], plan: Plan) -> tuple[str, ...]:
    """Flags for a plan on a chip; ``environment`` is the recorded environment of the experiment."""
    stated = environment.get(FLAGS_VARIABLE) or environment.get(MAXTEXT_KEY) or os.environ.get(FLAGS_VARIABLE)
    if stated:
        return tuple(stated.split())
    recommended = RECOMMENDED.get(chip, ())
    offloads = plan.offload or plan.moves_activations
    return recommended + flag_group("host_offload") if recommended and offloads else recommended


def maxtext_settings(experiment: Experiment, plan: Plan) -> dict[str, Any]:
    """Settings with which MaxText runs an experiment under a plan: those on record, overridden by the plan.

    Raises:
        InsufficientEvidenceError: the experiment has no MaxText settings on record.
        PlanError: MaxText cannot express the plan.
    """
    excluded = ("base_config",)
    recorded = {key: v for key, v in experiment.hyperparameters.items() if v != REDACTED and key not in excluded}
    if experiment.workload.framework != "MaxText" or not recorded:
        hint = "asap experiments add ID --config run.yml"
        raise InsufficientEvidenceError("no MaxText settings are on record", where=experiment.id, hint=hint)
    batch, layers = experiment.workload.global_batch, experiment.model.layers if experiment.model else None
    topology = experiment.hardware.topology
    overrides = to_overrides(plan, recorded, global_batch=batch, layers=layers, topology=topology)
    return {**recorded, **{key: yaml.safe_load(value) for key, value in overrides.items()}}
