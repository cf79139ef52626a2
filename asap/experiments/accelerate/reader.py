"""An experiment from Accelerate's configuration and the arguments of the program that it starts
(huggingface/accelerate, ``commands/config/config_args.py``; transformers, ``TrainingArguments``)."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from asap.core.errors import ConfigError
from asap.core.text import plain
from asap.experiments.accelerate.program import CONFIG, is_said, syncs_each_batch, with_file
from asap.experiments.deepspeed import training_arguments as terms
from asap.experiments.deepspeed.reader import is_setting as is_deepspeed_setting
from asap.experiments.deepspeed.reader import read_named_configuration, with_note_on_shipped
from asap.experiments.experiment import Experiment
from asap.experiments.files.documents import Brought, blamed_on, open_variable
from asap.experiments.huggingface_model import NO_MODEL
from asap.experiments.processes import with_devices, with_nodes
from asap.experiments.remarks import GATHERED, NO_BATCH, no_batch, note_on_unmodelled
from asap.experiments.training_program import check_arguments
from asap.models import Workload
from asap.plans.degrees import DEVICES_UNKNOWN, InexpressiblePlanError
from asap.plans.plan import Remat
from asap.stacks.accelerate import stack as accelerate
from asap.stacks.accelerate.stack import OPTION
from asap.stacks.deepspeed import stack as inline
from asap.stacks.deepspeed.stack import ACCUMULATION, MICRO_BATCH, SEQUENCE
from asap.stacks.reading import from_settings, global_batch_of
from asap.stacks.registry import abstract, spec
from asap.stacks.stack_settings import StackSettings, dotted, overriding
from asap.stacks.trainer.arguments import AUTO, RECOMPUTE, SECTION, TRAINER_ACCUMULATION, TRAINER_MICRO_BATCH

_OWN = frozenset(
    [
        accelerate.KIND, accelerate.PROCESSES, accelerate.MACHINES, accelerate.FSDP, accelerate.SIZES, inline.CONFIG,
        "mixed_precision",
    ]
)  # fmt: skip
LAUNCH_FILE = "accelerate_config"
"""TRL's argument that names a configuration of Accelerate."""
UNSAID = "set by a variable whose value is not said"
_DEEPSPEED = "deepspeed"
_SHARDS = {_DEEPSPEED: "FILE.json", OPTION: "full_shard"}
"""Arguments that make the program shard, each with a value."""
ARGUMENTS = abstract("trainer").words()
_REPLICATED = ("MULTI_GPU", "MULTI_NPU", "MULTI_XPU", "MULTI_HPU", "MULTI_MLU", "MULTI_MUSA", "NO")
_NO_RECOMPUTATION = (
    "what is recomputed is not said, and taken as the least that fits (the Trainer recomputes nothing unless it is told"
    f" to, TRL and LLaMA-Factory all layers): add {RECOMPUTE}=true or false"
)
_WHOLE_GRADIENTS = (
    "gradients are kept whole between microbatches, as the Trainer does by default: sync_each_batch in"
    " gradient_accumulation_kwargs of accelerator_config keeps them sharded"
)


def is_accelerate(values: Mapping[str, Any]) -> bool:
    """Whether a mapping is a configuration of Accelerate."""
    return accelerate.KIND in values and len(_OWN & values.keys()) >= 2


def is_setting(key: str) -> bool:
    """Whether an override is one of Accelerate's settings, or an argument of the program."""
    return key.partition(".")[0] in _OWN or key in ARGUMENTS - {"model"} or is_deepspeed_setting(key)


def read_accelerate(
    values: Mapping[str, Any], path: Path, overrides: Iterable[str], experiment: Experiment
) -> Experiment:
    """``experiment`` with what a configuration says, and overrides of it and of the program's arguments.

    Raises:
        ConfigError: a value of the wrong kind, not all parameters are trained, or a file that it names is not there.
        UsageError: an override is not ``key=value``.
    """
    for section in (accelerate.FSDP, accelerate.SIZES, inline.CONFIG):
        if not isinstance(values.get(section) or {}, Mapping):
            raise ConfigError(f"{section} is not a mapping", where=str(path))
    own, arguments, rest = split_overrides(overrides)
    return read_started(dotted(values) | own, arguments, path, experiment, overrides=rest)


def split_overrides(
    overrides: Iterable[str], words: frozenset[str] = ARGUMENTS
) -> tuple[dict[str, str], dict[str, str], list[str]]:
    """Accelerate's own settings, arguments of the program, and what else is said; raises UsageError."""
    given = overriding(overrides)
    own = {key: value for key, value in given.items() if key.partition(".")[0] in _OWN}
    arguments = {key: value for key, value in given.items() if key in words}
    rest = [f"{key}={value}" for key, value in given.items() if key not in own and key not in arguments]
    return own, arguments, rest


def read_started(
    configuration: Mapping[str, Any],
    arguments: Mapping[str, Any],
    path: Path,
    experiment: Experiment,
    *,
    overrides: Iterable[str] = (),
    unsaid: Mapping[str, str] = MappingProxyType({}),
    brought: Brought | None = None,
    defaults: Mapping[str, Any] | None = None,
    of_yaml: bool = False,
) -> Experiment:
    """``experiment`` with a program under a configuration.

    Args:
        configuration: by dotted key.
        arguments: of the program, by name; one may name a YAML of further ones.
        path: the file that says them.
        experiment: what is known besides.
        overrides: ``key=value`` of DeepSpeed's settings.
        unsaid: arguments whose value only a run can tell, as they are written.
        brought: files that come along with it.
        defaults: what the program takes where it is told nothing.
        of_yaml: whether the arguments are the top level of a YAML file.

    Raises:
        ConfigError: like :func:`read_accelerate`.
    """
    stated = {key: value for key, value in with_file(arguments, path, brought).items() if key not in unsaid}
    of_deepspeed = str(configuration.get(accelerate.KIND)).upper() == "DEEPSPEED"
    check_arguments({key: value for key, value in stated.items() if key != SEQUENCE or not of_deepspeed}, path)
    assumed = {key: value for key, value in (defaults or {}).items() if key not in stated and key not in unsaid}
    if "fp16" in stated:
        assumed.pop("bf16", None)
    stated |= assumed
    said = StackSettings(stated, str(path))
    settings = StackSettings(dict(configuration), str(path))
    experiment = _with_devices(settings, experiment)
    kind = str(settings.get(accelerate.KIND, "NO")).upper()
    if kind in _REPLICATED:
        if key := next((key for key in _SHARDS if key in unsaid), None):
            reason = f"the program's {key} is set by a variable whose value is not said"
            raise ConfigError(reason, where=str(path), hint=f"add {key}={_SHARDS[key]}, or {key}=false")
        named = said.get(_DEEPSPEED)
        if isinstance(named, Mapping) or str(named).endswith(".json"):
            kind, settings = "DEEPSPEED", settings.overridden({accelerate.KIND: "DEEPSPEED", inline.IN_FILE: named})
    if kind == "DEEPSPEED":
        named = settings.get(inline.IN_FILE)
        configuration = _of_deepspeed(settings, said, path, brought)
        read = terms.read_with_arguments(configuration, said, path, overrides, experiment, unsaid, of_yaml=of_yaml)
        own = {} if named is not None else {accelerate.KIND: settings[accelerate.KIND]}
        read = with_note_on_shipped(read, named, path, brought).knowing(hyperparameters=own)
    elif kind in ("FSDP", *_REPLICATED):
        each = syncs_each_batch(said, path, brought or {})
        read = _with_torch(settings, said, path, terms.with_model(said, experiment), unsaid, each)
    else:
        raise settings.wrong(accelerate.KIND, f"FSDP, DEEPSPEED or {_REPLICATED[0]}: others are not read")
    undecided = sorted(unsaid.keys() & ARGUMENTS)
    variables = dict.fromkeys(plain(name, 40) for key in undecided if (name := open_variable(unsaid[key])))
    ask = f"; add {' '.join(f'{name}=…' for name in variables)}" if variables else ""
    notes = [f"{UNSAID}: {', '.join(undecided)}{ask}"] if undecided else []
    if assumed:
        listed = ", ".join(f"{key}={str(value).lower()}" for key, value in assumed.items())
        notes.append(f"not said, and taken as the program has it today: {listed}")
    if read.model is None and kind != "DEEPSPEED":
        notes.append(NO_MODEL)
    return read.knowing(*notes, *terms.notes_on(said))


def _with_torch(
    settings: StackSettings,
    said: StackSettings,
    path: Path,
    experiment: Experiment,
    unsaid: Mapping[str, str],
    syncs_each: bool | None,
) -> Experiment:
    recorded = settings.harmless() | {f"{SECTION}.{key}": value for key, value in _of_trainer(said, unsaid).items()}
    table, devices, notes = spec("accelerate"), experiment.hardware.devices, list[str]()
    plan, batch = None, None
    with blamed_on(settings.where()):
        sharded = accelerate.layout(recorded) != "replica"
        try:
            if devices is None:
                raise InexpressiblePlanError(DEVICES_UNKNOWN)
            counted = accelerate.prepared(recorded, devices)
            plan = from_settings(table, counted, devices)
            batch = global_batch_of(table, counted, plan)
        except InexpressiblePlanError as error:
            notes.append(error.message if devices is None else f"the plan is unknown: {error.message}")
    if plan is not None:
        if plan.remat is Remat.NONE and f"{SECTION}.{RECOMPUTE}" not in recorded:
            plan = plan.model_copy(update={"remat": None})
        kept_whole = accelerate.is_fsdp(recorded) and (plan.microbatches or 1) > 1 and not syncs_each
        notes += [_unsaid_batch(said, unsaid)] if batch is None else []
        notes += [_NO_RECOMPUTATION] if plan.remat is None else []
        notes += [_WHOLE_GRADIENTS] if kept_whole else []
        notes += [GATHERED] if accelerate.keeps_gathered(recorded) else []
    workload = Workload(
        global_batch=batch,
        sequence_length=terms.sequence_length(said),
        precision=terms.precision(said, settings),
        weight_precision=terms.weight_precision(said, settings, sharded),
        framework="Accelerate FSDP" if accelerate.is_fsdp(recorded) else "Accelerate DDP",
        zero_stage=3 if sharded else 0,
        sync_each_batch=syncs_each if sharded else None,
        context_parallel="ring" if plan and plan.degree("seq") > 1 else None,
        **terms.of_program(said),
    )
    return experiment.knowing(
        *notes, *note_on_unmodelled(settings, spec("accelerate").unmodelled), *settings.misspelt(),
        plan=plan, workload=workload, hyperparameters=recorded,
        provenance={"plan": f"{path.name}: {accelerate.KIND}", "workload": path.name},
    )  # fmt: skip


def _of_trainer(said: StackSettings, unsaid: Mapping[str, str]) -> dict[str, Any]:
    """Arguments for the record; accumulation that only a run can tell hides the micro-batch, too."""
    known = said.harmless()
    if RECOMPUTE in said:
        known[RECOMPUTE] = said.flag(RECOMPUTE)
    if TRAINER_ACCUMULATION in unsaid:
        known.pop(TRAINER_MICRO_BATCH, None)
    return {TRAINER_ACCUMULATION: 1, **known} if TRAINER_MICRO_BATCH in known else known


def _unsaid_batch(said: StackSettings, unsaid: Mapping[str, str]) -> str:
    """What to add where the batch is unknown: what a variable holds, or the micro-batch, which a file may say."""
    open_ = [key for key in (TRAINER_MICRO_BATCH, TRAINER_ACCUMULATION) if key in unsaid]
    if open_ or TRAINER_MICRO_BATCH in said:
        return no_batch(open_ or [TRAINER_MICRO_BATCH])
    return f"{NO_BATCH}: add {TRAINER_MICRO_BATCH}=…, {CONFIG}=FILE.yaml with the program's arguments, or --batch N"


def _of_deepspeed(settings: StackSettings, said: StackSettings, path: Path, brought: Brought | None) -> dict[str, Any]:
    """DeepSpeed's settings, of the file that is named or as Accelerate says them, with the precision of the program."""
    named, computed = settings.get(inline.IN_FILE), terms.precision(said, settings)
    if named is not None:
        configuration = read_named_configuration(named, path, brought)
        decided = [kind for kind in ("bf16", "fp16") if configuration.get(f"{kind}.enabled") == AUTO and computed]
    else:
        decided = ["bf16", "fp16"]
        configuration = {"zero_optimization.stage": 2, ACCUMULATION: AUTO, MICRO_BATCH: AUTO}
        configuration |= {key: settings[word] for key, word in inline.OF_ACCELERATE.items() if word in settings}
        configuration |= {ACCUMULATION: AUTO} if TRAINER_ACCUMULATION in said else {}
    configuration |= {f"{kind}.enabled": computed == kind for kind in decided}
    sequence = settings.get(accelerate.size_key(settings, "sp_size"))
    return configuration | ({} if sequence is None else {SEQUENCE: sequence})


def _with_devices(settings: StackSettings, experiment: Experiment) -> Experiment:
    """The processes that are started, where no hardware is said."""
    said = (accelerate.PROCESSES, accelerate.MACHINES)
    processes, machines = (settings.count(key) if is_said(settings, key) else None for key in said)
    if processes and machines and processes % machines == 0:
        experiment = with_nodes(processes // machines, machines, experiment)
    return with_devices(processes, experiment)
