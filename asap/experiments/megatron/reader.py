"""An experiment from the arguments of Megatron-LM, or from a YAML of what runs on its core."""

from collections.abc import Iterable

from asap.core.errors import ConfigError, PlanError
from asap.core.numbers import digits
from asap.core.text import plain
from asap.core.units import counted
from asap.experiments.experiment import Experiment, HardwareReference
from asap.experiments.files.documents import blamed_on, validated
from asap.experiments.huggingface_model import NO_MODEL
from asap.experiments.remarks import note_on_unmodelled
from asap.experiments.training_program import refuse
from asap.models import Architecture
from asap.plans.degrees import DEVICES_UNKNOWN, InexpressiblePlanError
from asap.plans.plan import Plan, Remat
from asap.plans.remat import MODULES
from asap.plans.validity import Degrees
from asap.stacks.megatron.architecture import arguments_of_shapes, fields_of, sources_of
from asap.stacks.megatron.degrees import (
    EXPERT,
    EXPERT_TENSOR,
    INSTANCES,
    TENSOR,
    batch_of,
    experts_over,
    from_arguments,
    is_fully_sharded,
)
from asap.stacks.megatron.releases import of_deepspeed
from asap.stacks.megatron.stages import LAYER_IDS, lays_out_stages, numbered_layers, words_of
from asap.stacks.megatron.workload import DEEPSPEED, workload_of
from asap.stacks.registry import spec
from asap.stacks.stack_settings import StackSettings, overriding

_OPTIMIZER, _GRANULARITY = "optimizer", "recompute_granularity"
_OTHER_NODES = "if the launcher's nodes are not those of the run, say --hardware, such as h100-1024"
_OTHER_BATCH = "on these devices it takes another batch or other degrees: say --batch N, or arguments as key=value"


def read_words() -> frozenset[str]:
    """Arguments that the reader takes; the others are kept as they are."""
    return spec("megatron").words()


def plain_name(key: str) -> str:
    """``--micro-batch-size`` → ``micro_batch_size``."""
    return key.removeprefix("--").replace("-", "_")


def is_argument(key: str) -> bool:
    """Whether an override is one of Megatron-LM's arguments."""
    return key.startswith("--") or plain_name(key) in read_words()


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
        ConfigError: a value of the wrong kind, arguments that contradict each other, or another run than is modelled.
        UsageError: an override is not ``key=value``.
    """
    table = spec("megatron")
    said = settings.overridden(overriding(overrides, plain_name))
    refuse(table, said)
    unsettled -= {key for key in unsettled if key in said and said[key] != settings.get(key)}
    settings = of_deepspeed(said) if framework == DEEPSPEED else said
    shapes = {*arguments_of_shapes().values(), *table.names["shapes"]}
    model, sources, notes = _model(settings, experiment.model, unsettled & shapes)
    hardware, more = _hardware(settings, experiment.hardware)
    notes += more
    with blamed_on(settings.where()):
        on_record = None if "global_batch_size" in unsettled else batch_of(settings, hardware.devices)
    batch = experiment.workload.global_batch or on_record
    if degrees := unsettled & {*table.names["degrees"]}:
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
    if plan is not None and unsettled & {*table.names["recomputation"]}:
        plan = plan.model_copy(update={"remat": None})
    instances = {} if is_fully_sharded(settings) else {"more HBM and a shorter step": {INSTANCES: 1}}
    notes += note_on_unmodelled(settings, table.unmodelled) + note_on_unmodelled(settings, instances)
    place = settings.where().rpartition("/")[2]
    sources |= {"plan": f"{place}: parallel sizes, as {framework} lays them out", "workload": place}
    of_batch = (("global_batch", "global_batch_size"), ("sequence_length", "seq_length"))
    sources |= {f"workload.{field}": settings.source(key) for field, key in of_batch if key in settings}
    return experiment.knowing(
        *notes, *settings.misspelt(),
        model=model, hardware=hardware, plan=plan, workload=workload, hyperparameters=settings.harmless(),
        provenance=sources,
    )  # fmt: skip


def _model(
    settings: StackSettings, said: Architecture | None, unsettled: frozenset[str]
) -> tuple[Architecture, dict[str, str], tuple[str, ...]]:
    """The model that the arguments describe; where they leave it open, the one that is said besides."""
    if "num_layers" in settings and not unsettled:
        fields, notes = fields_of(settings)
        model = validated(Architecture, fields, settings.where())
        sources = sources_of(settings).items()
        known = {place: source for place, source in sources if getattr(model, place.partition(".")[2]) not in (None, 0)}
        return model, known, notes
    if said is not None:
        return said, {}, ()
    if not unsettled:
        return Architecture(), {}, (NO_MODEL,)
    listed = ", ".join(sorted(unsettled))
    return Architecture(), {}, (f"the model is unknown: it hangs on {listed}; add them as key=value, or model=NAME",)


def _hardware(settings: StackSettings, given: HardwareReference) -> tuple[HardwareReference, tuple[str, ...]]:
    """The devices: as said, else nodes times processes of the launcher."""
    nodes, each = (digits(str(settings.get(key, ""))) for key in ("nnodes", "nproc_per_node"))
    launched = settings.count("world_size") or (nodes or 0) * (each or 0) or None
    if each and nodes and nodes > 1 and given.node is None and given.devices in (None, each * nodes):
        given = given.model_copy(update={"node": each})
    if given.devices is not None:
        started = counted(launched or 0, "rank")
        note = f"the script starts {started}; the plan is for the {given.devices} devices that were said"
        return given, (note,) if launched not in (None, given.devices) else ()
    if launched is None:
        return given, (DEVICES_UNKNOWN,)
    return given.model_copy(update={"devices": launched}), ()


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
    """What of the arguments the plan says otherwise."""
    notes = []
    tensor, experts = settings.count(TENSOR) or 1, settings.count(EXPERT) or 1
    split = settings.count(EXPERT_TENSOR, tensor) or tensor
    if folded := tuple(axis for axis in experts_over(settings) if plan.degree(axis) > 1):
        axes = Degrees.of(plan, folded).expert_axes
        notes.append(f"experts lie over {settings[EXPERT]} devices, here {axes}")
    if 1 < split < tensor and experts > 1:
        notes.append(f"{EXPERT_TENSOR}={split}: experts are taken as split {tensor} ways, as attention is")
    if split > tensor and plan.degree("expert") > 1:
        taken = plan.degree("expert")
        notes.append(f"{EXPERT_TENSOR}={split}: {experts} x {split} devices are taken as {taken} x {tensor}")
    if layers is None and plan.remat is Remat.FULL and settings.text("recompute_method") == "block":
        notes.append("recompute_method block: all layers are taken as recomputed, as their number is not known")
    if numbered := numbered_layers(settings, layers):
        of_all = counted(layers, "layer") if layers else "layers whose number is not known: all are taken as recomputed"
        share = ", taken as the same share of each stage" if layers and plan.degree("stage") > 1 else ""
        notes.append(f"{LAYER_IDS}: {len(numbered)} of {of_all}{share}")
    if "a2a+p2p" in settings.words("cp_comm_type"):
        notes.append("cp_comm_type a2a+p2p: taken as a ring over all devices that share a sequence")
    unknown = [plain(module, 40) for module in words_of(settings.get("recompute_modules")) if module not in MODULES]
    if unknown and settings.text(_GRANULARITY) == "selective":
        taken = plan.remat.value if plan.remat else "unknown"
        notes.append(f"recompute_modules {', '.join(unknown)}: not modelled; the rest is taken as remat={taken}")
    return tuple(notes)
