"""A new experiment from what a user has: a configuration, a profile, and what is said on the command line."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from shlex import quote

from asap.core.errors import ConfigError, NotFoundError, PlanError, UsageError
from asap.core.files import exists, is_file, user_path
from asap.core.remote import is_remote
from asap.core.text import plain
from asap.experiments.configuration import read_untrusted
from asap.experiments.experiment import Experiment, refer_to_hardware, resolve_reference
from asap.experiments.logs.checks import contradictions, other_run_differences
from asap.experiments.logs.read import read_log
from asap.experiments.logs.reading import LogReading
from asap.experiments.logs.settings import settings_of
from asap.experiments.observed import FEWEST, MeasuredStep, Observed
from asap.experiments.remarks import still_open
from asap.experiments.trackers.source import read_tracked
from asap.hardware import find_chip, read_network
from asap.plans import Plan
from asap.plans.degrees import keep_micro_batch_of
from asap.plans.text import data_note
from asap.stacks.launchers import contract_of

_SAID = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)\s*(s|sec|seconds|ms|min)?", re.ASCII)
_UNITS = {None: 1.0, "s": 1.0, "sec": 1.0, "seconds": 1.0, "ms": 1e-3, "min": 60.0}
_WRITTEN = (
    "MaxText writes 'completed step: 5, seconds: 2.31', Megatron-LM 'elapsed time per iteration (ms): 2310',"
    " torchtitan 'step: 5 … tps: 1,234'"
)


class TokensUnknownError(ConfigError):
    """A log counts tokens a second, and how many a step has is not known."""


def read_measured_step(said: str, experiment: Experiment) -> Experiment:
    """The record with the step that ``2.31s``, ``2310 ms`` or the path of a training log states, and with what else the
    log says was seen. A log that ends out of memory before its first step has no step; what a log of another run
    measured is not taken.

    Raises:
        UsageError: it is neither a time nor a file.
        ConfigError: the log has no steps, or too few behind the warm-up.
    """
    found = _SAID.fullmatch(said.strip())
    if found:
        seconds = float(found[1]) * _UNITS[found[2]]
        if seconds <= 0:
            raise UsageError("a step time must be above zero", where=f"--step-time {plain(said, 40)}")
        return _with(experiment, measured=MeasuredStep(seconds=seconds, source="the user (--step-time)"))
    path = user_path(said)
    if not is_file(path):
        where = f"--step-time {plain(said, 60)}"
        raise UsageError("is neither a time nor a log file", where=where, hint="write it like 2.31s, or give a log")
    reading = read_log(path)
    settings, devices = settings_of(reading), experiment.hardware.devices
    if other := other_run_differences(reading, settings, experiment):
        return experiment.knowing(first=other)
    observed = Observed(file=plain(path.name, 80), measured=reading.measured, ending=reading.ending)
    died = reading.ending.kind == "out_of_memory" and reading.ending.before_first_step
    measured = None if died else _step_of(reading, path, _tokens_per_device(experiment))
    doubts = contradictions(reading, settings.model_copy(update={"devices": settings.devices or devices}), experiment)
    notes = (f"{observed.file} contradicts the record: {one}" for one in doubts)
    known = {name: value for name, value in (("measured", measured), ("observed", observed)) if value is not None}
    return _with(experiment, **known).knowing(*reading.ending.note(observed.file), *notes)


def _step_of(reading: LogReading, path: Path, tokens: float | None) -> MeasuredStep:
    """The steady steps of a log's last run: those behind the warm-up, of which the median is taken."""
    found = reading.measured
    step, rate, source = found.step, found.tokens_per_second_per_device, plain(path.name, 80)
    if rate is not None and step.steps < FEWEST and (tokens is not None or step.median is None):
        if tokens is None:
            hint = "say its batch, sequence and hardware, or the time itself"
            reason = "logs tokens a second, and the tokens of its step are not known"
            raise TokensUnknownError(reason, where=str(path), hint=hint)
        return MeasuredStep(seconds=tokens / rate, tokens_per_device=tokens, source=f"{source}: tokens a second")
    if step.median is None:
        raise ConfigError("has no completed training step", where=str(path), hint=_WRITTEN)
    return step.measured(source, rate * step.median if rate else None, where=str(path))


def _step_by_rate(experiment: Experiment) -> MeasuredStep | None:
    """The step of a log that says tokens a second alone, where the user says how many tokens a step has."""
    observed, tokens = experiment.observed, _tokens_per_device(experiment)
    if experiment.measured or observed is None or observed.measured.step.median or tokens is None:
        return None
    if (rate := observed.measured.tokens_per_second_per_device) is None:
        return None
    source = f"{observed.file}: tokens a second"
    return MeasuredStep(seconds=tokens / rate, tokens_per_device=tokens, source=source)


def completed_plan(stated: Plan, experiment: Experiment) -> Plan:
    """A plan with the settings that it leaves out as they are on record, and with the micro-batch of the record where
    the stack sets its size; where the batch does not divide into such, the number of microbatches is unknown."""
    before, batch = experiment.plan, experiment.workload.global_batch
    whole = stated.completed_by(before).model_copy(update={"dcn": stated.dcn})
    said = "microbatches" in stated.model_fields_set
    said = said or not contract_of(experiment.workload.framework).sets_micro_batch
    if said or before is None or not (before.microbatches and batch):
        return whole
    return next(keep_micro_batch_of(before, [whole], batch), whole.model_copy(update={"microbatches": None}))


def plan_under_batch(experiment: Experiment, batch: int) -> Plan | None:
    """The plan on record under another batch: stacks that set the size of a micro-batch keep it, and run more of them.

    Raises:
        ConfigError: the batch does not divide into micro-batches of that size.
    """
    plan, before = experiment.plan, experiment.workload.global_batch
    if plan is None or not (plan.microbatches and before) or before == batch:
        return plan
    if not contract_of(experiment.workload.framework).sets_micro_batch:
        return plan
    size, broken = divmod(before, plan.batch_shards * plan.microbatches)
    if broken:
        return plan
    count, rest = divmod(batch, plan.batch_shards * size)
    if rest or not count:
        parts = f"{plan.batch_shards} data-parallel groups x {size}, the micro-batch on record"
        raise ConfigError(
            f"a batch of {batch} is not a multiple of {parts}", where=plain(experiment.id, 60),
            hint="say another batch, or the micro-batch in the launcher's words",
        )  # fmt: skip
    return plan.model_copy(update={"microbatches": count})


SAID = "stated by the user"


@dataclass(frozen=True)
class Statement:
    """What a user says beside a configuration; it wins over what the configuration says.

    A plan ``over_record`` leaves out settings that stay as they are on record; any other is whole.
    """

    plan: str | None = None
    over_record: bool = False
    hardware: str | None = None
    topology: str | None = None
    slices: int | None = None
    network: str | None = None
    global_batch: int | None = None
    sequence_length: int | None = None
    goodput: float | None = None
    description: str | None = None
    step_time: str | None = None


NOTHING_STATED = Statement()
_OPTIONS = {"global_batch": "batch", "sequence_length": "sequence"}


def said_of(said: Statement, overrides: Sequence[str] = ()) -> list[str]:
    """What is stated, as it is typed: ``--hardware v5e-256``, ``key=value``; empty where nothing is."""
    known = {name: value for name, value in vars(said).items() if value is not None and name != "over_record"}
    return [f"--{_OPTIONS.get(name, name).replace('_', '-')} {quote(str(value))}" for name, value in known.items()] + [
        *overrides
    ]


def create_experiment(
    id: str,
    said: Statement,
    *,
    config: Path | None = None,
    overrides: Sequence[str] = (),
    profile: Path | str | None = None,
    source: str | None = None,
) -> Experiment:
    """Put a record together.

    Args:
        id: of the record.
        said: what the user says beside it.
        config: a configuration file.
        overrides: ``key=value`` for it.
        profile: a path, or an address on an object store.
        source: a run of a tracker: ``mlflow:RUN_ID``, ``tensorboard:DIR``.

    Raises:
        ConfigError: the configuration, or the hardware, contradicts itself.
        PlanError: the plan is malformed or does not multiply to the devices.
        NotFoundError: a path does not exist.
        AsapError: what :func:`asap.experiments.trackers.source.read_tracked` raises.
    """
    experiment = _state_hardware(Experiment(id=id), said)
    if source is not None:
        experiment = read_tracked(source, experiment)
    if config is not None or overrides:
        experiment = read_untrusted(config, overrides, experiment)
    return _state_rest(experiment, said, profile)


def amend(experiment: Experiment, said: Statement) -> Experiment:
    """Lay what a user says over a record; raises like :func:`create_experiment`.

    A log that counts tokens waits for the record that says how many a step has.
    """
    try:
        return _state_rest(_state_hardware(experiment, said), said)
    except TokensUnknownError:
        known = experiment.model or experiment.workload.framework or experiment.profile_path
        if known is not None:  # it is read what runs
            raise
        return amend(experiment, replace(said, step_time=None))


def _state_hardware(experiment: Experiment, said: Statement) -> Experiment:
    if not (said.hardware or said.topology or said.slices):
        return experiment
    before = experiment.hardware
    hardware, notes = refer_to_hardware(said.hardware or before.name or before.chip, said.topology, said.slices)
    if hardware.node is None and hardware.devices == before.devices:
        hardware = hardware.model_copy(update={"node": before.node})
    return _with(experiment, hardware=hardware).knowing(*(note for note in notes if note not in experiment.notes))


def _state_rest(experiment: Experiment, said: Statement, profile: Path | str | None = None) -> Experiment:
    if profile is not None and not is_remote(profile) and not exists(user_path(profile)):
        raise NotFoundError("no such profile", where=str(profile))
    if said.plan is not None:
        before = experiment.plan
        stated = _plan(said.plan, experiment)
        whole = completed_plan(stated, experiment) if said.over_record else stated
        experiment = _with(experiment, plan=whole, notes=still_open(experiment.notes, ["plan"]))
        if note := data_note(said.plan, before.degree("replica") if before else 1):
            experiment = experiment.knowing(note)
    over = said.over_record and said.plan is not None
    open_ = over and "microbatches" not in Plan.parse(said.plan or "").model_fields_set
    if said.global_batch is not None and (said.plan is None or open_):
        experiment = experiment.model_copy(update={"plan": plan_under_batch(experiment, said.global_batch)})
    workload = {k: v for k in ("global_batch", "sequence_length") if (v := getattr(said, k)) is not None}
    if workload:
        experiment = experiment if said.step_time else _drop_other_step(experiment, workload)
        experiment = _with(experiment, workload=experiment.workload.model_copy(update=workload))
        notes = still_open(experiment.notes, [f"workload.{key}" for key in workload])
        experiment = experiment.model_copy(update={"notes": notes})
    if said.network is not None:
        experiment = _state_network(experiment, said.network)
    rest: dict[str, object] = {"goodput": said.goodput, "description": said.description}
    if said.step_time is not None:
        experiment = read_measured_step(said.step_time, experiment)
    elif step := _step_by_rate(experiment):
        rest["measured"] = step
    if profile is not None:
        rest["profile_path"] = str(profile) if is_remote(profile) else str(user_path(profile).resolve())
    return _with(experiment, **{field: value for field, value in rest.items() if value is not None})


NOT_USED = "and is not used; --step-time states another"


def _drop_other_step(experiment: Experiment, workload: Mapping[str, int]) -> Experiment:
    """The record without the measured step of another batch or sequence than a user says."""
    differs = [key for key, value in workload.items() if getattr(experiment.workload, key) not in (None, value)]
    if experiment.measured is None or not differs:
        return experiment
    named = " and ".join(f"{key.replace('_', ' ')} {getattr(experiment.workload, key):,}" for key in differs)
    note = f"the step that {experiment.measured.source} measured is of {named} {NOT_USED}"
    return experiment.model_copy(update={"measured": None, "observed": None, "notes": (note, *experiment.notes)})


def _tokens_per_device(experiment: Experiment) -> float | None:
    """Of a step; ``None`` where batch, length or devices are not known."""
    tokens = experiment.workload.tokens
    devices = experiment.hardware.devices or (experiment.plan.devices if experiment.plan else None)
    return tokens / devices if tokens and devices else None


def _state_network(experiment: Experiment, text: str) -> Experiment:
    found = find_chip(experiment.hardware.chip or experiment.hardware.name or "")
    if found is None:
        raise ConfigError("a network needs the chip that it joins", where=plain(text, 60), hint="add --hardware")
    reference = experiment.hardware
    chip = resolve_reference(reference).slice.chip if reference.devices else found.chip
    rate = read_network(text, chip)
    return _with(experiment, hardware=experiment.hardware.model_copy(update={"network": rate}))


def _plan(text: str, experiment: Experiment) -> Plan:
    plan = Plan.parse(text)
    devices = experiment.hardware.devices
    if devices is not None and plan.devices != devices:
        raise PlanError(f"multiplies to {plan.devices} devices, and the hardware has {devices}", where=str(plan))
    return plan


def _with(experiment: Experiment, **fields: object) -> Experiment:
    return experiment.knowing(provenance=dict.fromkeys(fields, SAID)).model_copy(update=fields)
