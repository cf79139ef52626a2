"""A plan as what is pasted for Megatron-LM and what runs on its core: options, settings of Hydra, a YAML."""

import math
import re
from collections.abc import Mapping

from asap.core.errors import PlanError
from asap.plans.plan import Plan
from asap.stacks.megatron.degrees import CHECKPOINTS, FSDP, INSTANCES, OFFLOAD, STRATEGY, to_arguments
from asap.stacks.megatron.degrees import counted as counted
from asap.stacks.megatron.degrees import layout as layout
from asap.stacks.megatron.reading import model_of as model_of
from asap.stacks.megatron.reading import notes_on as notes_on
from asap.stacks.megatron.reading import plan_fields as plan_fields
from asap.stacks.megatron.reading import prepared as prepared
from asap.stacks.megatron.releases import JOINT, Changes, is_megatron_deepspeed, is_set, reminder
from asap.stacks.megatron.stages import (
    FIRST_AND_LAST,
    GRANULARITY,
    LAYERS_EACH,
    LAYOUT,
    METHOD,
    MODULES,
    RECOMPUTED_LAYERS,
    VIRTUAL,
    by_layers,
    in_words_of_core,
)
from asap.stacks.megatron.stages import remat_of as remat_of
from asap.stacks.megatron.stages import repeats_of as repeats_of
from asap.stacks.registry import spec as table_of
from asap.stacks.rules import facts_of, needed, refusals
from asap.stacks.spec import Spec
from asap.stacks.writing import switches_line

_SEQUENCE = "sequence_parallel"
"""To be left out without tensor parallelism: Megatron-LM does so itself, NeMo does not."""
_VIRTUAL_SIZE, _OF_STAGES = "virtual_pipeline_model_parallel_size", (VIRTUAL, LAYERS_EACH)
_OF_FSDP = (FSDP, STRATEGY, INSTANCES, CHECKPOINTS, "use_distributed_optimizer", "use_torch_fsdp2")
_WITHOUT_VALUE = (
    *_OF_STAGES, LAYOUT, GRANULARITY, METHOD, RECOMPUTED_LAYERS, MODULES, *FIRST_AND_LAST,
)  # fmt: skip
"""Arguments with a value, which YAML takes back by ``null``; others are flags."""
CORE_SECTION = "section_of_core"
"""Among settings: where a configuration of Megatron-Bridge has what Megatron's core knows. Since July 2026 recipes of
Llama have it in ``model.transformer``: an override of ``model.…`` has to be forced there, and may be elsewhere."""
_OF_LEVELS = "hierarchical_context_parallel_sizes"
_FORCED = "++"
"""Before a setting that a configuration may not have, which Hydra refuses otherwise."""

Settings = Mapping[str, object]
_Values = dict[str, str | bool | None]


def changes(
    spec: Spec,
    plan: Plan,
    current: Settings,
    *,
    global_batch: int | None,
    layers: int | None,
    sequence: int | None,
    **_: object,
) -> dict[str, str]:
    """Arguments that change for a plan, as texts: ``false`` is one to leave out; with those that it is predicted with
    where nothing is on record. Raises PlanError where the stack cannot express the plan."""
    check(plan, current)
    arguments = to_arguments(plan, current, global_batch=global_batch, layers=layers)
    if spec.contract == "nemo":
        _nemo_settings(arguments)  # which refuses what NeMo has no words for
        arguments |= {_SEQUENCE: False} if plan.degree("model") == 1 and is_set(current, _SEQUENCE) else {}
    if spec.contract != "megatron":
        arguments = in_words_of_core(arguments)
    elif not is_megatron_deepspeed(current):
        beside = needed(table_of("megatron").rules, facts_of(plan), current)
        arguments = by_layers(arguments, plan, current, layers)
        arguments |= {option: value for option, value in beside.items() if not is_set(current, option)}
        arguments |= starting_settings(plan, global_batch, sequence) if not current and sequence else {}
    return {key: str(value).lower() if isinstance(value, bool) else value for key, value in arguments.items()}


def lines(spec: Spec, changed: Mapping[str, str], current: Settings) -> str:
    """Arguments that change, as options of a command or overrides of Hydra."""
    arguments = _add_switches(changed)
    if spec.contract != "megatron":
        return hydra_overrides(arguments, spec.contract, current)
    joint = str(current.get(JOINT, "-"))
    also = reminder(arguments) if is_megatron_deepspeed(current) else remarks(arguments, current)
    return switches_line({key.replace("-", "_"): value for key, value in changed.items()}, joint) + also


def yaml_values(changed: Mapping[str, str]) -> _Values:
    """Arguments that change, for a YAML that holds them by name."""
    return _yaml_values(_add_switches(changed))


def _add_switches(changed: Mapping[str, str]) -> Changes:
    switches: dict[str, str | bool] = {"true": True, "false": False}
    return {key.replace("-", "_"): switches.get(value, value) for key, value in changed.items()}


def hydra_overrides(arguments: Mapping[str, str | bool], stack: str, current: Settings) -> str:
    """Arguments that change for NeMo (``nemo``) or Megatron-Bridge: ``model.tensor_model_parallel_size=4``.

    NeMo's that its configuration lacks are forced into it. Raises PlanError where NeMo has none.
    """
    of_nemo = stack == "nemo"
    table = table_of("nemo" if of_nemo else "megatron-bridge")
    own = {today: name for name, today in table.renamed.items()} if of_nemo else {}
    core = "model" if of_nemo else str(current.get(CORE_SECTION, f"{_FORCED}model"))
    terms = []
    for key, value in _yaml_values(_nemo_settings(arguments) if of_nemo else arguments).items():
        name = _VIRTUAL_SIZE if key in _OF_STAGES else own.get(key, key)
        text = "null" if value is None else str(value).lower() if isinstance(value, bool) else value
        known = not of_nemo or not current or not {key, name, name.partition(".")[0]}.isdisjoint(current)
        section = next((section for section, names in table.sections.items() if key in names), core)
        terms.append(f"{'' if known else _FORCED}{section}.{name}={text}")
    return " ".join(terms)


def _yaml_values(arguments: Mapping[str, str | bool]) -> _Values:
    """Arguments that change for a YAML that holds them by name; ``None`` takes one back."""
    values = {key: None if value is False and key in _WITHOUT_VALUE else value for key, value in arguments.items()}
    modules = values.get(MODULES)
    return {**values, MODULES: f"[{','.join(modules.split())}]"} if isinstance(modules, str) else values


def _nemo_settings(arguments: Mapping[str, str | bool]) -> Changes:
    """Arguments that change for NeMo, which has PyTorch's FSDP, with another optimizer
    (``nlp/parts/megatron_trainer_builder.py``).

    Raises:
        PlanError: groups of replicas are sharded each for themselves, the optimizer is offloaded, or modules are
            recomputed.
    """
    if isinstance(arguments.get(MODULES), str):
        raise PlanError("a YAML of NeMo recomputes attention or whole layers, no other modules")
    if arguments.get(OFFLOAD) is True:
        raise PlanError("a YAML of NeMo offloads no optimizer")
    rest = {key: value for key, value in arguments.items() if key not in _OF_FSDP}
    shards = arguments.get(FSDP)
    if shards is None:
        return rest
    if str(arguments.get(INSTANCES, 1)) != "1":
        raise PlanError("NeMo shards over all data-parallel processes: data alone, or replica alone")
    wholly: Changes = {"fsdp_sharding_strategy": "full", "optim.name": "fused_adam"} if shards else {}
    return {**rest, "fsdp": shards, **wholly}


def check(plan: Plan, current: Settings) -> None:
    """Check a plan beside the arguments as they are, Megatron-LM's or those of what runs on its core.

    Raises:
        PlanError: Megatron-LM refuses it.
    """
    context, found = plan.degree("seq"), refusals(table_of("megatron").rules, facts_of(plan), current)
    levels = (
        math.prod(map(int, re.findall(r"\d+", str(current[_OF_LEVELS])))) if is_set(current, _OF_LEVELS) else context
    )
    other = f"{_OF_LEVELS} multiplies to {levels}, not to {context}" if levels != context else None
    if (reason := next(found, other)) is not None:
        raise PlanError(f"Megatron-LM refuses it: {reason}")


def starting_settings(plan: Plan, global_batch: int | None, sequence: int) -> Changes:
    """What a plan is predicted with where nothing runs yet: a distributed optimizer, bf16, sequence parallelism.

    Args:
        plan: what to run.
        global_batch: sequences in a step.
        sequence: tokens in a sequence.
    """
    batch: Changes = {"global_batch_size": str(global_batch)} if global_batch else {}
    split: Changes = {_SEQUENCE: True} if plan.degree("model") > 1 else {}
    return {**batch, "seq_length": str(sequence), "bf16": True, "use_distributed_optimizer": True, **split}


def remarks(changed: Changes, current: Settings) -> str:
    """What arguments need that are new to a run, as a comment of a shell."""
    new = [key for key, value in changed.items() if value is not False and current.get(key) is None]
    found = [f"{key.replace('_', '-')} {said}" for key in new if (said := table_of("megatron").remarks.get(key))]
    return f"  # {'; '.join(found)}" if found else ""
