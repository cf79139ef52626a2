"""torchtitan's settings that a fork or a later release has, and what of a run they change."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from asap.core.errors import ConfigError
from asap.core.text import plain
from asap.experiments.named_model import SHAPES
from asap.experiments.settings.remarks import note_on_unused
from asap.plans.plan import Plan
from asap.stacks.stack_settings import StackSettings
from asap.stacks.torchtitan import settings as titan

_KNOWN = {
    "model": frozenset(
        (
            "name", "flavor", "converters", "tokenizer_path", "hf_assets_path", "attn_mask_type", "norm_type",
            "print_after_conversion", "use_flex_attn", "attn_backend", "model", "tie_word_embeddings",
        )
    ),
    "parallelism": frozenset(
        (
            "data_parallel_replicate_degree", "data_parallel_shard_degree", "tensor_parallel_degree",
            "pipeline_parallel_degree", "context_parallel_degree", "expert_parallel_degree",
            "expert_tensor_parallel_degree", "context_parallel_load_balancer", "context_parallel_rotate_method",
            "disable_loss_parallel", "enable_async_tensor_parallel", "enable_compiled_autograd",
            "enable_sequence_parallel", "expert_parallel_comm_backend", "fsdp_reshard_after_forward",
            "module_fqns_per_model_part", "num_pp_microbatches", "pipeline_parallel_expert_parallel_overlap",
            "pipeline_parallel_first_stage_less_layers", "pipeline_parallel_last_stage_less_layers",
            "pipeline_parallel_layers_per_stage", "pipeline_parallel_microbatch_size",
            "pipeline_parallel_microbatches", "pipeline_parallel_schedule", "pipeline_parallel_schedule_csv",
            "pipeline_parallel_split_points", "spmd_backend",
        )
    ),
    "activation_checkpoint": frozenset(
        (
            "mode", "selective_ac_option", "memory_budget", "debug", "determinism_check", "early_stop",
            "preserve_rng_state", "visualize_memory_budget_pareto",
            "per_op_sac_force_recompute_mm_shapes_by_fqns", "per_op_sac_force_save_mm_shapes_by_fqns",
        )
    ),
}  # fmt: skip
"""Of all versions from December 2023 to August 2026 (``torchtitan/config_manager.py``, ``config/job_config.py``)."""
NAMES_OF_SHAPES = re.compile(
    r"(?:^|_)(?:moe|experts?|dim|heads?|kv|hidden|ffn|mlp|vocab\w*|layers?|window|depth|width|mtp|rank|quantizers?)(?:_|$)"
)
"""Names of what decides a model's shapes."""
_VOCABULARY = re.compile(r"\.(?:padded_)?vocab(?:ulary)?_size$")
_MOST = 8
_ISLANDS, _EVERY = "fault_tolerance.semi_sync_method", "fault_tolerance.sync_steps"


def own_vocabulary(settings: StackSettings) -> str | None:
    """A setting outside of ``[model]`` that no torchtitan has and that by its name is the vocabulary's size."""
    return next((key for key in settings if _VOCABULARY.search(key) and not key.startswith("model.")), None)


def own_shapes(settings: StackSettings) -> str | None:
    """Settings of ``[model]`` that no torchtitan has and that by their name change its shapes; ``None`` without."""
    found = [key for key in _own(settings, ("model",)) if NAMES_OF_SHAPES.search(key)]
    return _listed(found) if found else None


def notes_on_own(settings: StackSettings) -> tuple[str, ...]:
    """Notes on settings whose effect is not known, and on replicas that go their own way for some steps."""
    others = [key for key in _own(settings, _KNOWN) if not (key.startswith("model.") and NAMES_OF_SHAPES.search(key))]
    notes = [f"not read, as no torchtitan has it: {_listed(others)}"] if others else []
    if settings.get(_ISLANDS) not in (None, "") and settings.flag("fault_tolerance.enable"):
        every = plain(settings.get(_EVERY, "some"), 20)
        notes.append(f"replicas exchange what they learnt once in {every} steps ({_ISLANDS}); taken as in every step")
    return tuple(notes)


def unknown_shapes(listed: str, model: str) -> str:
    """The note on a model that they change."""
    return f"the model is unknown: torchtitan has no {listed}, which by its name changes {model}: add {SHAPES}"


def _own(settings: StackSettings, sections: Iterable[str]) -> list[str]:
    parts = ((key, *key.split(".", 2)[:2]) for key in settings if "." in key)
    return [key for key, section, name in parts if section in sections and name not in _KNOWN[section]]


def _listed(keys: list[str]) -> str:
    return plain(", ".join(keys[:_MOST]), 240) + (", …" if len(keys) > _MOST else "")


_STEPS = re.compile(r"training\.(?:gradient|grad)?_?accum(?:ulation)?(?:_steps)?", re.ASCII)


def with_global_batch(settings: StackSettings, plan: Plan | None) -> tuple[StackSettings, tuple[str, ...]]:
    """The settings with the batch of all steps that a fork accumulates, and a note on them.

    Args:
        settings: of a run.
        plan: on its devices; without one nothing is added.
    """
    key = next((key for key in settings if _STEPS.fullmatch(key)), None)
    steps = settings.count(key) if key else None
    if plan is None or key is None or steps in (None, 1) or str(settings.get(titan.GLOBAL_BATCH, -1)) != "-1":
        return settings, ()
    batch = steps * titan.global_batch_of(settings, plan.batch_shards)
    note = f"{plain(key, 60)}={steps}, which no torchtitan has, is read by its name: {steps} microbatches to an update"
    return settings.overridden({titan.GLOBAL_BATCH: batch}), (note,)


_ADAPTERS = re.compile(r"(?<![a-z])(?:q?lora|dora|peft|adapters?)(?![a-z])", re.IGNORECASE)
_CONVERTERS, _FLAVOR = "model.converters", "model.flavor"
_ENABLED = ("enable", "enabled", "use")
_OFF = ("false", "none", "0", "")


def refuse_adapters(settings: Mapping[str, Any], path: Path) -> None:
    """Raise ConfigError where adapters are trained."""
    named = next((key for key in (_CONVERTERS, _FLAVOR) if _ADAPTERS.search(str(settings.get(key) or ""))), None)
    sections = (str(key).rpartition(".")[0] for key in settings)
    section = next((one for one in sections if _ADAPTERS.fullmatch(one.rpartition(".")[2])), None)
    switches = [str(settings[key]) for name in _ENABLED if (key := f"{section}.{name}") in settings]
    if any(switch.casefold() in _OFF for switch in switches):
        section = None
    if found := named or section:
        shown = f"{found} = {plain(settings[found], 40)}" if named else plain(found, 60)
        reason = f"{shown}: training a part of the parameters is not modelled"
        raise ConfigError(reason, where=str(path), hint="give a run that trains all of them")


_USUAL: dict[str, object] = {
    "optimizer.early_step_in_backward": False,
    "training.mixed_precision_reduce": "float32",
    "parallelism.fsdp_reshard_after_forward": "default",
    "parallelism.enable_async_tensor_parallel": False,
    "experimental.enable_async_tensor_parallel": False,
    "float8.enable_fsdp_float8_all_gather": False,
    "quantize.linear.float8.enable_fsdp_float8_all_gather": False,
}


def not_predicted(settings: StackSettings) -> tuple[str, ...]:
    """One note that names them all; none where all are as torchtitan has them."""
    return note_on_unused(settings, _USUAL)
