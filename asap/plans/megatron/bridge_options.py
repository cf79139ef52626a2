"""Options of the scripts that start a recipe of Megatron-Bridge (its ``scripts/performance``): they are laid over the
recipe after Hydra's overrides (``utils/overrides.py``, ``set_user_overrides``), so what they say is said there."""

from collections.abc import Mapping

from asap.plans.megatron.arguments import GLOBAL_BATCH

_MARKS = ("model_recipe_name", "model_family_name", "model_size")
_OPTIONS = frozenset(
    [
        "tensor_model_parallel_size", "pipeline_model_parallel_size", "virtual_pipeline_model_parallel_size",
        "context_parallel_size", "expert_model_parallel_size", "expert_tensor_parallel_size", "global_batch_size",
        "micro_batch_size",
    ]
)  # fmt: skip


def is_started_by_script(settings: Mapping[str, object]) -> bool:
    """Whether options of such a script are on record."""
    return any(mark in settings for mark in _MARKS)


def with_batch(
    arguments: Mapping[str, str | bool], settings: Mapping[str, object], global_batch: int | None
) -> dict[str, str | bool]:
    """Arguments that change, with the batch where the script is not told it: it scales a recipe's with the groups."""
    unsaid = arguments and global_batch is not None and GLOBAL_BATCH not in settings
    return {**arguments, GLOBAL_BATCH: str(global_batch)} if unsaid else dict(arguments)


def as_options(overrides: str) -> str:
    """Overrides with those as options that the script has: ``--tensor_model_parallel_size 4``."""
    return " ".join(map(_as_option, overrides.split()))


def _as_option(override: str) -> str:
    key, _, value = override.partition("=")
    name = key.rpartition(".")[2]
    if name not in _OPTIONS:
        return override
    return f"--{name} {'None' if value == 'null' else value}"
