"""Settings of a fork's own in sections of torchtitan that decide the model and its layout."""

import re
from collections.abc import Iterable

from asap.core.text import plain
from asap.experiments.named_model import SHAPES
from asap.experiments.settings.stack_settings import StackSettings

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
