"""A log's settings as a record: by the reader of its stack where it has one, else by what the settings are called.

What the log leaves open stays unknown: no default of a program is taken where its settings were not printed.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from asap.core.errors import AsapError, ConfigError, UsageError
from asap.core.text import plain
from asap.core.units import exact, format_seconds
from asap.experiments.experiment import Experiment, HardwareReference, refer_to_hardware
from asap.experiments.files.documents import Document
from asap.experiments.huggingface_model import read_named_model
from asap.experiments.logs import machine
from asap.experiments.logs.checks import contradictions, other_run_differences, trains_adapters
from asap.experiments.logs.formats import table
from asap.experiments.logs.read import read_log
from asap.experiments.logs.reading import FLATTENED, LogReading
from asap.experiments.logs.settings import LogSettings, settings_of
from asap.experiments.logs.values import scalar
from asap.experiments.maxtext import over_model
from asap.experiments.observed import Measured, MeasuredStep, Observed
from asap.experiments.remarks import NO_PLAN, still_open
from asap.flags.environment import is_performance_variable
from asap.hardware import find_chip
from asap.models import Workload
from asap.models.adapters import ALL, adapter_parameters
from asap.plans.degrees import DEVICES_UNKNOWN
from asap.stacks.registry import instead_of_log, is_claimed, specs
from asap.stacks.stack_settings import dotted

ReadDocument = Callable[[Document, Sequence[str], Experiment], Experiment]
"""What reads a mapping of settings of any stack."""
ReadCommand = Callable[[str, Path, Sequence[str], Experiment], Experiment | None]
"""What reads a command that starts a run; ``None`` where it is of no stack."""
_NAMES = {"gpt-neox": "Megatron-DeepSpeed", "maxtext": "MaxText", "torchtitan": "torchtitan", "fsdp": "Accelerate FSDP"}
_OF_DEEPSPEED = "deepspeed"
_SIGNS = {"num_layers", "hidden_size", "num_attention_heads", "micro_batch_size", "batch_size"}
_OF_ANY_OBJECTIVE = ("trainer", "deepspeed", "mlperf", "nemo", "litgpt", None)
"""Programs that train other than language models as well."""


def read_log_record(
    path: Path, overrides: Sequence[str], experiment: Experiment, read_document: ReadDocument, read_command: ReadCommand
) -> Experiment:
    """``experiment`` with the last run of a log: settings, hardware, step time, memory, and how it ended.

    Raises:
        NotFoundError: there is no such file.
        ConfigError: it cannot be read, has no settings of a run, or its settings contradict each other.
    """
    reading = read_log(path)
    has_settings = settings_of(reading) != LogSettings()
    reading = _with_devices(reading, experiment.hardware.devices or reading.hardware.listed)
    settings = settings_of(reading)
    adapted = trains_adapters(reading, settings, path)
    elsewhere = other_run_differences(reading, settings, experiment)
    experiment = _add_hardware(reading, settings, path, experiment)
    if (started := _by_command(reading, settings, path, overrides, experiment, read_command)) is not None:
        experiment, refusals = started, ()
    else:
        experiment, refusals = _by_readers(reading, settings, path, overrides, experiment, read_document)
    if (shape := reading.statements.get("mesh_shape")) and machine.is_other_mesh(experiment, shape):
        note = f"{path.name} prints a mesh of ({shape}), and not which axis is which: add --plan"
        experiment = experiment.model_copy(update={"plan": None}).knowing(note)
    experiment = _filled(settings, reading, path, experiment)
    experiment = _add_adapters(reading, settings, path, experiment) if adapted else experiment
    doubts = contradictions(reading, settings, experiment)
    if experiment.plan is None and not any(doubts.values()) and (plan := machine.plan_of(settings)) is not None:
        experiment = experiment.knowing(plan=plan, provenance={"plan": path.name})
    seen = reading.figures.get("lines")
    known = (reading.measured.step.steps > 0 and bool(reading.stack or seen)) or reading.ending.kind in _OF_DEVICES
    known = known or bool(reading.measured.tokens_per_second_per_device)
    ill_placed = bool(elsewhere and refusals) and experiment.model is None
    if ill_placed or not (known or experiment.model or experiment.plan or experiment.workload.tokens):
        part = "a part of the settings, and no steps" if has_settings else "neither settings nor steps"
        part = f"steps without their times, and {'a part of the' if has_settings else 'no'} settings" if seen else part
        unread = "figures without the settings of their run" if reading.measured != Measured() else part
        ended = f"; {reading.ending} (line {reading.ending.line_number})" if reading.ending.note("") else ""
        reason = (refusals[0] if refusals else f"states {unread}") + ended
        raise ConfigError(reason, where=str(path), hint=instead_of_log(reading.stack))
    notes = (*elsewhere, *(f"{path.name} contradicts itself: {one}" for one in doubts), *reading.ending.note(path.name))
    notes += (*experiment.notes, *reading.notes, *refusals, *_notes(reading, settings, path, adapted))
    if reading.blocks and not refusals and reading.stack:
        said = {"plan": any(note.startswith(NO_PLAN) for note in notes)}
        unsaid = {part: how for part, how in _ASKED.items() if not (getattr(experiment, part) or said.get(part))}
        way = instead_of_log(reading.stack)
        notes += tuple(f"{path.name} does not say the {part}: add {how}, or {way}" for part, how in unsaid.items())
    update: dict[str, Any] = {"notes": tuple(dict.fromkeys(notes))}
    if elsewhere:
        return experiment.model_copy(update=update)
    variables = {name: value for name, value in reading.statements.items() if is_performance_variable(name)}
    update["environment"] = variables | experiment.environment
    measured = _measured_step(reading, settings, experiment)
    update["observed"] = Observed(file=path.name, measured=reading.measured, ending=reading.ending)
    sources = {"observed": path.name}
    if measured is not None and experiment.measured is None and not doubts:
        update["measured"], sources["measured"] = measured, path.name
    return experiment.model_copy(update=update).knowing(provenance=sources)


_OF_DEVICES = ("out_of_memory", "collective_timeout")
"""Endings of runs on accelerators alone, which are on record whatever else a log says."""


def _with_devices(reading: LogReading, said: int | None) -> LogReading:
    """A reading with the devices that a user says, where the log does not: batch and plan may follow from them."""
    if said is None or settings_of(reading).devices is not None:
        return reading
    return reading.model_copy(update={"hardware": reading.hardware.model_copy(update={"devices": said})})


def _by_command(
    reading: LogReading, settings: LogSettings, path: Path, overrides: Sequence[str], experiment: Experiment,
    read_command: ReadCommand,
) -> Experiment | None:  # fmt: skip
    """The command that a log begins with, read as a script is; ``None`` where a block says what came of it, or a line
    says otherwise."""
    for block in reading.blocks if all(one.command for one in reading.blocks) else ():
        with suppress(AsapError):
            found = read_command(block.command, path, overrides, experiment)
            if found is None or found.plan is None:
                continue
            said = settings.global_batch, settings.sequence, settings.tensor
            read = found.workload.global_batch, found.workload.sequence_length, found.plan.degree("model")
            if all(one in (None, other) for one, other in zip(said, read, strict=True)):
                return found
    return None


_ASKED = {"model": "model=NAME", "plan": '--plan "data=8 model=2"'}


def _by_readers(
    reading: LogReading, settings: LogSettings, path: Path, overrides: Sequence[str], experiment: Experiment,
    read_document: ReadDocument,
) -> tuple[Experiment, tuple[str, ...]]:  # fmt: skip
    """The first reading of the log's blocks by a stack's own reader that succeeds, and why others did not."""
    flattened = (one.line for one in reading.blocks if one.kind.startswith(FLATTENED))
    refusals = [f"the settings of {path.name}:{line} are not used: their indentation is lost" for line in flattened]
    for line, values, shaped in _documents(reading, settings, experiment):
        document, model = Document(path, values, dict.fromkeys(values, line)), over_model(values)
        try:
            read = read_document(document, (*model, *overrides), shaped)
            return read if line or overrides else _as_stated(read, settings, reading), ()
        except UsageError:
            raise
        except AsapError as error:
            without = None
            with suppress(AsapError):
                without = overrides and read_document(document, model, shaped)
            if without:
                raise UsageError(error.message, where="override", hint=error.hint) from error
            cut = ", which are cut," if any(one.line == line and not one.complete for one in reading.blocks) else ""
            refusals.append(f"the settings of {path.name}:{line or 1}{cut} are not used: {plain(error.message, 200)}")
    if overrides and not refusals:
        hint = "add model=NAME, --plan, --batch and --sequence, or give the configuration, and this log by --step-time"
        raise UsageError("is for a setting that the log does not have", where=plain(overrides[0], 60), hint=hint)
    return experiment, tuple(refusals)


def _documents(
    reading: LogReading, settings: LogSettings, experiment: Experiment
) -> Iterator[tuple[int, dict[str, Any], Experiment]]:
    """Mappings as configuration files have them, each with the record that it is laid over."""
    shaped = machine.read_shapes(reading, experiment)
    main = [block for block in reading.blocks if not block.kind.startswith((_OF_DEEPSPEED, FLATTENED))]
    for block in main:
        if block.kind.startswith("arguments") and reading.stack == "megatron" and len(block.values.keys() & _SIGNS) > 1:
            yield block.line, machine.as_megatron(settings, block), shaped
        elif (block.complete or block.kind.startswith("call")) and is_claimed(dotted(block.values)):
            yield block.line, block.values, shaped
        elif block.kind == "maxtext" and (block.complete or "model_name" in block.values):
            said = {key: scalar(str(value)) for key, value in block.values.items()}
            yield block.line, machine.mesh_of_maxtext(reading) | said, shaped
        elif block.kind.startswith(("json", "yaml")) and reading.stack not in table("settings")["shapes"]:
            yield block.line, block.values, shaped
        elif "per_device_train_batch_size" in block.values and settings.model:
            said = {key: value for key, value in block.values.items() if value not in (None, "", [], {})}
            yield block.line, {"model_name_or_path": settings.model, **said}, shaped
    if reading.stack == "torchtitan" and (values := machine.as_torchtitan(reading, settings)):
        yield 0, values, shaped


def _as_stated(read: Experiment, settings: LogSettings, reading: LogReading) -> Experiment:
    """A record without the batch, sequence and checkpointing that a program has by default and no line states."""
    sizes = {"global_batch": settings.global_batch or settings.micro_batch, "sequence_length": settings.sequence}
    unsaid = {name: None for name, size in sizes.items() if size is None}
    sources = {key: source for key, source in read.provenance.items() if key.rpartition(".")[2] not in unsaid}
    built = settings.zero or settings.recompute or reading.measured.step.steps
    parts = {"microbatches": sizes["global_batch"], "remat": built or None}
    plan = read.plan and read.plan.model_copy(update={name: None for name, said in parts.items() if said is None})
    workload = read.workload.model_copy(update=unsaid)
    return read.model_copy(update={"workload": workload, "provenance": sources, "plan": plan})


def _add_hardware(reading: LogReading, settings: LogSettings, path: Path, experiment: Experiment) -> Experiment:
    """The machine of the log, where none is said."""
    said, hardware, devices = experiment.hardware, reading.hardware, settings.devices
    if said.name or said.chip or said.devices or (not hardware.chip and not devices):
        return experiment
    if not (hardware.chip and devices):
        named = any(block.values.get("compile_topology") for block in reading.blocks)
        said = HardwareReference(devices=devices) if devices and not named else said
        return experiment.model_copy(update={"hardware": said})
    try:
        found, notes = refer_to_hardware(hardware.chip, devices=devices)
        if found.topology and (slices := hardware.slices or settings.slices):
            found, notes = refer_to_hardware(hardware.chip, slices=slices, devices=devices)
    except AsapError as error:  # as many of them make no slice
        return experiment.knowing(f"{path.name}: {error}")
    if not found.topology:
        found = found.model_copy(update={"name": f"{hardware.chip}-{devices}"})
    source = f"{path.name}: {plain(hardware.named or '', 60)}"
    if hardware.listed == devices:
        notes += (f"{path.name} lists {devices} devices, which are taken as those of the run: --hardware says others",)
    return experiment.knowing(*notes, hardware=found, provenance={"hardware": source})


def _filled(settings: LogSettings, reading: LogReading, path: Path, experiment: Experiment) -> Experiment:
    """The record with what no reader took: model, batch, sequence and precision as single lines state them."""
    update: dict[str, Any] = {}
    sources: dict[str, str] = {}
    notes: tuple[str, ...] = ()
    nameless = experiment.model is None or not (experiment.model.name or experiment.model.layers)
    if experiment.model is None and (sized := machine.model_of_shapes(reading.stack, settings)):
        update["model"], sources["model"] = sized, path.name
    elif nameless and settings.model:
        experiment = experiment.model_copy(update={"notes": still_open(experiment.notes, ("model",))})
        update["model"], notes = read_named_model(settings.model.rstrip("/").rpartition("/")[2].replace(" ", "-"))
        sources["model"] = path.name
    said = {
        "global_batch": settings.global_batch, "sequence_length": settings.sequence, "precision": settings.precision,
        "zero_stage": 3 if settings.zero == "fsdp" else settings.zero,
        "framework": _framework(reading.stack, settings, reading.hardware.chip),
    }  # fmt: skip
    workload = {k: v for k, v in said.items() if v is not None and getattr(experiment.workload, k) is None}
    if workload:
        update["workload"] = Workload.model_validate(experiment.workload.model_dump() | workload)
        sources |= {f"workload.{key}": path.name for key in workload}
    return experiment.knowing(*notes, provenance=sources, **update)


_ADAPTED = (
    "{} trains low-rank adapters beside weights that are taken as 16 bits: add workload.frozen_precision=nf4 or int8 if"
    " they are quantized"
)
_RANK = "workload.adapter_rank=N says another"


def _add_adapters(reading: LogReading, settings: LogSettings, path: Path, experiment: Experiment) -> Experiment:
    """Adapters of all projections, of the rank that a line says or that has as many parameters as are trained (else 8);
    where no block says it."""
    if experiment.workload.adapter_rank:
        return experiment
    each = adapter_parameters(experiment.model, 1, ALL) if experiment.model else 0.0
    known = settings.adapter_rank or round((settings.trainable or 0) / each if each else 0)
    said = {"adapter_rank": known or 8, "frozen_precision": "bf16"}
    workload = experiment.workload.model_copy(update=said)
    unsaid = () if known else (f"{path.name} does not say the rank of its adapters: 8 is taken; {_RANK}",)
    return experiment.knowing(_ADAPTED.format(path.name), *unsaid, workload=workload)


def _framework(stack: str | None, settings: LogSettings, chip: str | None) -> str | None:
    """What the record calls a program; one that no table has words for is PyTorch's, unless it runs on TPUs."""
    if stack == "trainer":
        stack = "deepspeed" if isinstance(settings.zero, int) else settings.zero or stack
    table, found = specs().get(stack or ""), find_chip(chip or "")
    unnamed = None if found and found.chip.kind == "tpu" else "PyTorch"
    return stack and _NAMES.get(stack, table.framework if table else unnamed)


def _measured_step(reading: LogReading, settings: LogSettings, experiment: Experiment) -> MeasuredStep | None:
    """The median step; where a log has sequences or tokens a second alone, by those of the record."""
    step, rate = reading.measured.step, reading.measured.tokens_per_second_per_device
    if step.median is not None:
        return step.measured(reading.file, rate * step.median if rate else None, fewest=1)
    if (sequences := reading.measured.samples_per_second) and (batch := experiment.workload.global_batch):
        return MeasuredStep(seconds=batch / sequences, source=f"{reading.file}: sequences a second")
    each = (experiment.workload.tokens or 0) / (experiment.hardware.devices or settings.devices or math.inf)
    source = f"{reading.file}: tokens a second"
    return MeasuredStep(seconds=each / rate, tokens_per_device=each, source=source) if rate and each else None


def _notes(reading: LogReading, settings: LogSettings, path: Path, adapted: bool) -> tuple[str, ...]:
    """What a reader of the record should know: what is not said, blocks that are cut, slow steps."""
    notes: list[str] = []
    if not (reading.blocks or settings.layers):
        notes.append(f"{path.name} has no settings of the run: {instead_of_log(reading.stack)}")
    chip, named = reading.hardware.chip, reading.hardware.named
    if named and not chip:
        unknown = f"calls its hardware {plain(named, 60)}, which is no known chip: add --hardware"
        notes.append(f"{path.name} {_ON_CPU if named.casefold() == 'cpu' else unknown}")
    if chip and not settings.devices:
        notes.append(f"{path.name} is of a run on {chip}, and does not say how many there are: add --hardware {chip}-N")
    if settings.devices is settings.global_batch is None and settings_of(_with_devices(reading, 1)).global_batch:
        notes.append(f"{path.name}: {DEVICES_UNKNOWN}")
    if settings.objective is None and reading.stack in _OF_ANY_OBJECTIVE:
        whole = "" if adapted else "training all parameters on "
        trained = f", and trains {exact(settings.trainable)} parameters" if settings.trainable else ""
        notes.append(f"{path.name} does not say what its steps train{trained}: {_ASSUMED.format(whole)}")
    for block in reading.blocks:
        if not block.complete:
            missing = "taken as MaxText's defaults" if "model_name" in block.values else "unknown"
            cut = f"the settings that begin in line {block.line} of {path.name} are cut"
            notes.append(f"{cut}: what is missing is {missing}")
    printed = any("activation_checkpoint" in block.values for block in reading.blocks)
    if reading.statements.get("recompute") == "selective" and not printed:
        notes.append(f"{path.name} does not say what selective checkpointing keeps: {_SELECTIVE}")
    if (step := reading.measured.step).most and not step.steps:
        notes.append(f"{path.name} has first steps alone, {format_seconds(step.most)} with start-up: {_FIRST}")
    if step.slow_steps:
        notes.append(f"slow steps of {path.name}, over 1.5 times the median, are left out: {step.slowest}")
    if rate := reading.measured.tokens_per_second_as_said:
        notes.append(f"{path.name} says {exact(round(rate))} tokens/s, and not whether of a device or of all")
    if reading.hardware.network == "Socket":
        notes.append(f"NCCL uses sockets between nodes, by {path.name}: the fabric is not in use")
    if reading.ending.largest:
        notes.append(f"the largest tensors of {path.name}, by XLA: {'; '.join(map(str, reading.ending.largest[:3]))}")
    return tuple(notes)


_FIRST = "it is not taken as measured (--step-time does)"
_ON_CPU = "is of a run on a CPU: its steps say nothing of accelerators"
_ASSUMED = "{}text is taken; preferences, reinforcement learning, encoders are not modelled"
_SELECTIVE = "every second layer is taken, torchtitan's default; activation_checkpoint.selective_ac_option=op says else"
