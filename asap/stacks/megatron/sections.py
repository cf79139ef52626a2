"""Megatron's settings as NeMo and Megatron-Bridge write them: in sections, as options, as lines of a recipe."""

from collections.abc import Mapping

from asap.core.errors import PlanError
from asap.stacks.megatron.arguments import (
    FSDP,
    GLOBAL_BATCH,
    GRANULARITY,
    INSTANCES,
    LAYERS_EACH,
    METHOD,
    MICRO_BATCH,
    MODULES,
    MOMENTS,
    OFFLOAD,
    OPTIMIZER,
    RECOMPUTED_LAYERS,
    STRATEGY,
    VIRTUAL,
)
from asap.stacks.megatron.requirements import CHECKPOINTS, OVERLAP, PRECISION_AWARE
from asap.stacks.megatron.stages import FIRST_AND_LAST, LAYER_IDS, LAYOUT

VIRTUAL_SIZE = "virtual_pipeline_model_parallel_size"
PARAMETERS = frozenset(
    [
        "tensor_model_parallel_size", "pipeline_model_parallel_size", VIRTUAL_SIZE, "context_parallel_size",
        "expert_model_parallel_size", "expert_tensor_parallel_size", "sequence_parallel", FSDP, GLOBAL_BATCH,
        MICRO_BATCH,
    ]
)  # fmt: skip
"""What recipes of Megatron-Bridge take (its ``recipes``); all else belongs into a section of its configuration."""
_OF_STAGES = {VIRTUAL, LAYERS_EACH}
_OF_FSDP = (FSDP, STRATEGY, INSTANCES, CHECKPOINTS, "use_distributed_optimizer", "use_torch_fsdp2")
_WITHOUT_VALUE = (
    VIRTUAL, LAYERS_EACH, LAYOUT, GRANULARITY, METHOD, RECOMPUTED_LAYERS, LAYER_IDS, MODULES, *FIRST_AND_LAST,
)  # fmt: skip
"""Arguments with a value, which YAML takes back by ``null``; others are flags."""
SECTIONS_OF_BRIDGE = {
    **dict.fromkeys((MICRO_BATCH, GLOBAL_BATCH), "train"),
    **dict.fromkeys((OFFLOAD, OPTIMIZER, PRECISION_AWARE, *MOMENTS.values()), "optimizer"),
    **dict.fromkeys((INSTANCES, FSDP, STRATEGY, "use_distributed_optimizer"), "ddp"),
    CHECKPOINTS: "checkpoint",
    **dict.fromkeys(("tp_comm_overlap", *OVERLAP), "comm_overlap"),
}
"""Where Megatron-Bridge has an argument that is none of the model."""
CORE_SECTION = "section_of_core"
"""Among settings: where a configuration of Megatron-Bridge has what Megatron's core knows. Since July 2026 recipes of
Llama have it in ``model.transformer``: an override of ``model.…`` has to be forced there, and may be elsewhere."""
_FORCED = "++"
"""Before a setting that a configuration may not have, which Hydra refuses otherwise."""
_ANY_CORE_SECTION = f"{_FORCED}model"


def is_of_stages(key: str) -> bool:
    """Whether an argument says virtual stages, which others count for each rank."""
    return key in _OF_STAGES


def yaml_values(arguments: Mapping[str, str | bool]) -> dict[str, str | bool | None]:
    """Arguments that change for a YAML that holds them by name; ``None`` takes one back."""
    values = {key: None if value is False and key in _WITHOUT_VALUE else value for key, value in arguments.items()}
    modules = values.get(MODULES)
    return {**values, MODULES: f"[{','.join(modules.split())}]"} if isinstance(modules, str) else values


def own_yaml_values(arguments: Mapping[str, str | bool]) -> dict[str, str]:
    """Arguments that change for Megatron-LM's own YAML, below their sections (``--yaml-cfg``)."""
    named = {f"{_section_of_own(key)}{key}": value for key, value in yaml_values(arguments).items()}
    return {key: "null" if value is None else str(value) for key, value in named.items()}


def _section_of_own(key: str) -> str:
    if key.startswith("recompute"):
        return "language_model."
    of_core = key.endswith("_parallel_size") or key == "sequence_parallel"
    return "model_parallel." if of_core else ""


def hydra_overrides(arguments: Mapping[str, str | bool], kind: str, current: Mapping[str, object] | None = None) -> str:
    """Arguments that change for NeMo and Megatron-Bridge: ``model.tensor_model_parallel_size=4``.

    Args:
        arguments: to be written; ``False`` is one to leave out.
        kind: which of the two.
        current: the settings as they are.
    """
    current = current or {}
    of_core = "model" if kind == "NeMo" else current.get(CORE_SECTION, _ANY_CORE_SECTION)
    renamed = {
        "NeMo": {
            GRANULARITY: "activations_checkpoint_granularity",
            METHOD: "activations_checkpoint_method",
            RECOMPUTED_LAYERS: "activations_checkpoint_num_layers",
        }
    }.get(kind, {})
    sections = {} if kind == "NeMo" else SECTIONS_OF_BRIDGE
    terms = []
    if kind == "NeMo" and isinstance(arguments.get(MODULES), str):
        raise PlanError("a YAML of NeMo recomputes attention or whole layers, no other modules")
    arguments = _with_fsdp_of_nemo(arguments) if kind == "NeMo" else arguments
    for key, value in yaml_values(arguments).items():
        name = VIRTUAL_SIZE if key in _OF_STAGES else renamed.get(key, key)
        text = "null" if value is None else str(value).lower() if isinstance(value, bool) else value
        said = kind != "NeMo" or not current or not {key, name, name.partition(".")[0]}.isdisjoint(current)
        terms.append(f"{'' if said else _FORCED}{sections.get(key, of_core)}.{name}={text}")
    return " ".join(terms)


def _with_fsdp_of_nemo(arguments: Mapping[str, str | bool]) -> dict[str, str | bool]:
    """NeMo has PyTorch's FSDP, with another optimizer (``nlp/parts/megatron_trainer_builder.py``).

    Raises:
        PlanError: groups of replicas are sharded each for themselves, or the optimizer is offloaded.
    """
    if arguments.get(OFFLOAD) is True:
        raise PlanError("a YAML of NeMo offloads no optimizer")
    rest = {key: value for key, value in arguments.items() if key not in _OF_FSDP}
    shards = arguments.get(FSDP)
    if shards is None:
        return rest
    if str(arguments.get(INSTANCES, 1)) != "1":
        raise PlanError("NeMo shards over all data-parallel processes: data alone, or replica alone")
    return {
        **rest,
        "fsdp": shards,
        **({"fsdp_sharding_strategy": "full", "optim.name": "fused_adam"} if shards else {}),
    }


def primus_values(arguments: Mapping[str, str | bool]) -> dict[str, str | bool | None]:
    """Arguments that change for a module of Primus that starts a recipe of Megatron-Bridge: parameters of the recipe,
    and settings below their sections.

    Raises:
        PlanError: recomputation changes, which no recipe has a parameter for, and Primus lays over none that is unset.
    """
    if any(key.startswith("recompute") for key in arguments):
        raise PlanError("Primus hands no recomputation on to a recipe of Megatron-Bridge")
    named = {VIRTUAL_SIZE if key in _OF_STAGES else key: value for key, value in yaml_values(arguments).items()}
    sections = {key: f"{SECTIONS_OF_BRIDGE.get(key, 'model')}.{key}" for key in named if key not in PARAMETERS}
    return {sections.get(key, key): value for key, value in named.items()}


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


RECIPE_WORDS = "words_of_recipe"
"""Among settings: that a recipe is changed by a command."""
_SECTIONS = {
    **dict.fromkeys((MICRO_BATCH, GLOBAL_BATCH), "data"),
    **dict.fromkeys(
        (OFFLOAD, PRECISION_AWARE, "use_distributed_optimizer", "overlap_param_gather_with_optimizer_step"),
        "optim.config",
    ),
    **dict.fromkeys(("tp_comm_overlap", "distribute_saved_activations", *OVERLAP), "model.config"),
    **dict.fromkeys((STRATEGY, INSTANCES), "trainer.strategy.ddp"),
}
_SHARDING = {FSDP: "megatron", "use_torch_fsdp2": "pytorch"}


def recipe_lines(arguments: Mapping[str, str | bool]) -> str:
    """Arguments that change, as words of a command."""
    found = dict(_setting(key, value) for key, value in yaml_values(arguments).items() if key != CHECKPOINTS)
    return " ".join(f"{key}={value}" for key, value in found.items())


def _setting(key: str, value: str | bool | None) -> tuple[str, str | bool | None]:
    if key in _SHARDING:
        return "trainer.strategy.fsdp", _SHARDING[key] if value else None
    if key.startswith("recompute"):
        return f"model.config.{key}", value
    name = VIRTUAL_SIZE if is_of_stages(key) else key
    return f"{_SECTIONS.get(key, 'trainer.strategy')}.{name}", value
