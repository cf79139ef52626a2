"""An experiment from the settings of Megatron-LM, NeMo or Megatron-Bridge."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from asap.core.errors import ConfigError, PlanError
from asap.core.numbers import digits
from asap.core.text import plain
from asap.core.units import counted
from asap.experiments.experiment import Experiment, HardwareReference
from asap.experiments.files.hydra_defaults import laid_over
from asap.experiments.files.named_file import Brought
from asap.experiments.megatron.architecture import SHAPES, architecture_of
from asap.experiments.megatron.arguments import script_arguments, with_overrides
from asap.experiments.megatron.deepspeed_configuration import with_configuration
from asap.experiments.megatron.forks import left_to_checkpoint, of_deepspeed, of_forks
from asap.experiments.megatron.names import CORE, DEEPSPEED, READ, not_predicted
from asap.experiments.megatron.workload import PRECISION, workload_of
from asap.experiments.megatron.yaml_dialects import BRIDGE, nemo_arguments, without_shapes
from asap.experiments.named_model import NO_MODEL
from asap.experiments.shell import with_sources
from asap.flags.environment import is_performance_variable
from asap.models import Architecture
from asap.plans.degrees import InexpressiblePlanError
from asap.plans.partial_remat import MODULES
from asap.plans.plan import Plan, Remat
from asap.plans.validity import Degrees
from asap.stacks.megatron.degrees import experts_over, from_arguments
from asap.stacks.megatron.recomputation import LAYER_IDS, numbered_layers, words_of
from asap.stacks.megatron.stages import lays_out_stages
from asap.stacks.stack_settings import StackSettings

_UNUSED = "--deepspeed_config is not used without --deepspeed"
_RECOMPUTATION = frozenset(key for key in READ if key.startswith("recompute"))
_OPTIMIZER = "optimizer"
_OTHER_NODES = "if the launcher's nodes are not those of the run, say --hardware, such as h100-1024"
_OTHER_BATCH = "on these devices it takes another batch or other degrees: say --batch N, or arguments as key=value"
_SIZES = ("tensor_model_parallel_size", "pipeline_model_parallel_size", "context_parallel_size")
_DEGREES = frozenset(
    key for key in READ if "parallel_size" in key or "virtual" in key or "sharding" in key
) | frozenset(
    (
        "zero_stage",
        "moe_expert_parallel_size",
        "use_megatron_fsdp",
        "use_torch_fsdp2",
        "use_custom_fsdp",
        "num_distributed_optimizer_instances",
    )
)


def read_megatron_script(
    text: str, path: Path, overrides: Iterable[str], experiment: Experiment, brought: Brought | None = None
) -> Experiment:
    """``experiment`` with what a launch script says; raises like :func:`read_megatron`."""
    text = with_sources(text, path.parent, brought)
    script = script_arguments(text, path)
    environment = {key: value for key, value in script.exports.items() if is_performance_variable(key)}
    deepspeed = script.settings.flag("deepspeed")
    settings, left_open, notes = of_forks(script.settings), frozenset[str](), ()
    if deepspeed:
        settings, left_open, notes = with_configuration(settings, text, path, brought or {})
    elif "deepspeed_config" in settings:
        settings, notes = settings.overridden({"deepspeed_config": None}), (_UNUSED,)
    experiment = experiment.model_copy(
        update={
            "environment": experiment.environment | environment,
            "notes": (*experiment.notes, *script.notes, *notes),
        }
    )
    unsettled = script.unsettled | left_open | left_to_checkpoint(settings)
    if script.sourced:
        unsettled = unsettled.union(*(keys for keys in (PRECISION, _RECOMPUTATION) if not keys & settings.keys()))
    return read_megatron(settings, overrides, experiment, DEEPSPEED if deepspeed else CORE, unsettled)


def read_nemo(
    values: Mapping[str, Any],
    kind: str,
    path: Path,
    overrides: Iterable[str],
    experiment: Experiment,
    unsettled: frozenset[str] = frozenset(),
) -> Experiment:
    """``experiment`` with what a YAML of NeMo or Megatron-Bridge says; raises like :func:`read_megatron`."""
    values, overrides = laid_over(values, overrides)
    settings, notes = nemo_arguments(values, kind, path)
    if kind == BRIDGE and "_target_" not in values["model"]:
        notes += (f"{path.name} is laid over a recipe, which decides what it does not say",)
        settings, more = without_shapes(settings, path)
        notes += more
        said = {key for key in settings if settings[key] not in (None, False)}
        recomputation = frozenset[str]() if _says_recomputation(settings) else _RECOMPUTATION
        precision = frozenset[str]() if isinstance(values.get("mixed_precision"), str) else PRECISION
        unsettled = frozenset({*_SIZES, *precision, *recomputation, _OPTIMIZER} - said)
    experiment = experiment.model_copy(update={"notes": (*experiment.notes, *notes)})
    return read_megatron(settings, overrides, experiment, kind, unsettled)


def _says_recomputation(settings: StackSettings) -> bool:
    """Whether all layers are recomputed, or modules that are named."""
    granularity = settings.text("recompute_granularity")
    return granularity == "full" or (granularity == "selective" and "recompute_modules" in settings)


def read_megatron(
    settings: StackSettings,
    overrides: Iterable[str],
    experiment: Experiment,
    framework: str,
    unsettled: frozenset[str] = frozenset(),
) -> Experiment:
    """``experiment`` with what arguments say; hardware that is said wins over the script's nodes.

    What hangs on an argument that is ``unsettled``, as only a run can tell it, is unknown.

    Raises:
        ConfigError: a value of the wrong kind, arguments that contradict each other, or no decoder.
        UsageError: an override is not ``key=value``.
    """
    said = with_overrides(settings, overrides)
    unsettled -= {key for key in unsettled if key in said and said[key] != settings.get(key)}
    settings = of_deepspeed(said) if framework == DEEPSPEED else said
    model, sources, notes = _model(settings, experiment.model, unsettled & SHAPES)
    hardware, more = _hardware(settings, experiment.hardware)
    notes += more
    on_record = None if "global_batch_size" in unsettled else _batch(settings, hardware.devices)
    batch = experiment.workload.global_batch or on_record
    if degrees := unsettled & _DEGREES:
        plan, more = None, (f"the plan is unknown: it hangs on {', '.join(sorted(degrees))}; add them as key=value",)
    else:
        hint = _OTHER_NODES if experiment.hardware.devices is None else _OTHER_BATCH
        plan, more = _plan(settings, hardware.devices, model.layers, batch, hint)
    notes += more
    workload = workload_of(settings, framework, batch, unsettled, model.layers)
    if plan is not None:
        stages = (plan.degree("stage"), plan.pipeline_repeats)
        laid_out = lays_out_stages(settings, model.layers, *stages)
        workload = workload.model_copy(update={"laid_out_stages": stages if laid_out else None})
    if _OPTIMIZER in unsettled:
        notes += (f"the optimizer is not said, and taken for Adam: add {_OPTIMIZER}=NAME where it is another",)
    if plan is not None and unsettled & _RECOMPUTATION:
        plan = plan.model_copy(update={"remat": None})
    place = settings.where().rpartition("/")[2]
    sources |= {"plan": f"{place}: parallel sizes, as {framework} lays them out", "workload": place}
    sources |= {
        f"workload.{field}": settings.source(key)
        for field, key in (("global_batch", "global_batch_size"), ("sequence_length", "seq_length"))
        if key in settings
    }
    return experiment.model_copy(
        update={
            "model": model,
            "hardware": hardware,
            "plan": plan,
            "workload": workload,
            "hyperparameters": experiment.hyperparameters | settings.harmless(),
            "provenance": experiment.provenance | sources,
            "notes": (*experiment.notes, *notes, *not_predicted(settings), *settings.misspelt()),
        }
    )


def _model(
    settings: StackSettings, said: Architecture | None, unsettled: frozenset[str]
) -> tuple[Architecture, dict[str, str], tuple[str, ...]]:
    """The model that the arguments describe; where they leave it open, the one that is said besides."""
    if "num_layers" in settings and not unsettled:
        return architecture_of(settings)
    if said is not None:
        return said, {}, ()
    if not unsettled:
        return Architecture(), {}, (NO_MODEL,)
    listed = ", ".join(sorted(unsettled))
    return Architecture(), {}, (f"the model is unknown: it hangs on {listed}; add them as key=value, or model=NAME",)


def _hardware(settings: StackSettings, given: HardwareReference) -> tuple[HardwareReference, tuple[str, ...]]:
    """The devices: as said, else nodes times processes of the launcher."""
    launched = settings.count("world_size")
    if launched is None and "nnodes" in settings and "nproc_per_node" in settings:
        nodes, each = (str(settings[key]) for key in ("nnodes", "nproc_per_node"))
        if nodes.isdecimal() and each.isdecimal():
            launched = int(nodes) * int(each) or None
    if "nnodes" in settings and given.node is None:
        nodes, each = (digits(str(settings.get(key, ""))) for key in ("nnodes", "nproc_per_node"))
        if each and nodes and nodes > 1 and given.devices in (None, each * nodes):
            given = given.model_copy(update={"node": each})
    if given.devices is not None:
        differs = launched not in (None, given.devices)
        started = counted(launched or 0, "rank")
        note = f"the script starts {started}; the plan is for the {given.devices} devices that were said"
        return given, (note,) if differs else ()
    if launched is None:
        return given, ("how many devices there are is not said: add --hardware, such as h100-64",)
    return given.model_copy(update={"devices": launched}), ()


def _batch(settings: StackSettings, devices: int | None) -> int | None:
    """``global_batch_size``, by default a microbatch for each data-parallel group."""
    if "global_batch_size" in settings:
        return settings.count("global_batch_size")
    micro = settings.count("micro_batch_size")
    if micro is None or devices is None:
        return None
    used = 1
    for key in ("tensor_model_parallel_size", "pipeline_model_parallel_size", "context_parallel_size"):
        used *= settings.count(key) or 1
    return micro * (devices // used) or None


def _plan(
    settings: StackSettings, devices: int | None, layers: int | None, batch: int | None, hint: str
) -> tuple[Plan | None, tuple[str, ...]]:
    if devices is None:
        return None, ("the plan is unknown: data parallelism is what the devices leave, and their number is not said",)
    try:
        plan = from_arguments(settings, devices, layers, batch)
    except InexpressiblePlanError as error:
        return None, (f"the plan is unknown: {error.message}",)
    except PlanError as error:
        raise ConfigError(error.message, where=settings.where(), hint=error.hint or hint) from error
    return plan, _notes_on(settings, plan, layers)


def _notes_on(settings: StackSettings, plan: Plan, layers: int | None) -> tuple[str, ...]:
    notes = []
    tensor = settings.count("tensor_model_parallel_size") or 1
    split = settings.count("expert_tensor_parallel_size", tensor)
    if folded := tuple(axis for axis in experts_over(settings) if plan.degree(axis) > 1):
        axes = Degrees.of(plan, folded).expert_axes
        notes.append(f"experts lie over {settings['expert_model_parallel_size']} devices, here {axes}")
    if split and 1 < split < tensor and (settings.count("expert_model_parallel_size") or 1) > 1:
        notes.append(f"expert_tensor_parallel_size={split}: experts are taken as split {tensor} ways, as attention is")
    if split and split > tensor and plan.degree("expert") > 1:
        said, taken = settings.get("expert_model_parallel_size"), plan.degree("expert")
        notes.append(f"expert_tensor_parallel_size={split}: {said} x {split} devices are taken as {taken} x {tensor}")
    if layers is None and plan.remat is Remat.FULL and settings.text("recompute_method") == "block":
        notes.append("recompute_method block: all layers are taken as recomputed, as their number is not known")
    if numbered := numbered_layers(settings, layers):
        of_all = counted(layers, "layer") if layers else "layers whose number is not known: all are taken as recomputed"
        each = ", taken as the same share of each stage" if layers and plan.degree("stage") > 1 else ""
        notes.append(f"{LAYER_IDS}: {len(numbered)} of {of_all}{each}")
    if "a2a+p2p" in settings.words("cp_comm_type"):
        notes.append("cp_comm_type a2a+p2p: taken as a ring over all devices that share a sequence")
    unknown = [plain(module, 40) for module in words_of(settings.get("recompute_modules")) if module not in MODULES]
    if unknown and settings.text("recompute_granularity") == "selective":
        taken = plan.remat.value if plan.remat else "unknown"
        notes.append(f"recompute_modules {', '.join(unknown)}: not modelled; the rest is taken as remat={taken}")
    return tuple(notes)
