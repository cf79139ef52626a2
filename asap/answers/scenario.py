"""A run with something else than its plan changed: batch, sequence, chips, slices, precision, optimizer."""

from dataclasses import dataclass, replace
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from asap.answers.figure import PlanName
from asap.answers.inquiry import Inquiry
from asap.answers.plan_names import in_full, of_micro_batch, without_micro_batch
from asap.core.errors import InsufficientEvidenceError, UsageError
from asap.core.numbers import as_setting
from asap.core.units import exact
from asap.evidence.effect import carried_over
from asap.experiments.create import NOT_USED, Statement
from asap.experiments.experiment import Experiment, refer_to_hardware
from asap.experiments.launcher_settings import apply_launcher_settings, key_of_launcher
from asap.experiments.remarks import modelled_by_none
from asap.hardware import default_topology, find_chip
from asap.levers.lever import Trial
from asap.levers.state import FAMILIES, PAGED, optimizer_fields
from asap.levers.table import TRIALS
from asap.plans import Plan
from asap.plans.axes import AXES
from asap.plans.plan import SETTINGS, Mesh
from asap.plans.torus import over_devices
from asap.prediction.memory_outcomes import outcomes_of
from asap.prediction.predict_study import expect
from asap.prediction.prediction import Prediction
from asap.proposals.launch import why_not_launched
from asap.proposals.selection.search import run_of
from asap.study.changed import changed_study, drop_step_time
from asap.study.study import MemoryOutcome, Study, read_plan

Count = Annotated[int, Field(ge=1, le=10**9)]


class Change(BaseModel):
    """What is different in a supposed run."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    plan: PlanName = "now"
    global_batch: Count | None = Field(default=None, description="sequences in a step, whole job")
    sequence_length: Count | None = Field(default=None, description="tokens in a sequence")
    hardware: str | None = Field(default=None, max_length=100, description="chip and size, such as v5e-256 or h100-64")
    chips: Count | None = Field(default=None, description="so many of the chips of now")
    slices: Count | None = Field(default=None, description="slices of the job, of the size of now")
    network: str | None = Field(default=None, max_length=40, description="its rate: 1600Gb/node, 200Gb/gpu")
    precision: str | None = Field(default=None, max_length=40, description="bf16, fp8, int8, …")
    optimizer: str | None = Field(default=None, max_length=40, description="adamw, adafactor, …")
    setting: str | None = Field(default=None, max_length=40, description="one that `settings` lists, by its name")

    @property
    def changes(self) -> bool:
        """Whether anything beside the plan differs."""
        return bool(self.label)

    @property
    def label(self) -> str:
        """What differs beside the plan: ``,global_batch=512``."""
        said = ((name, getattr(self, name)) for name in Change.model_fields if name != "plan")
        return "".join(f",{name}={value}" for name, value in said if value is not None)


_OF_PLANS = {*AXES, *SETTINGS, "micro_batch", "mbs", "zero"}
"""Words of plans; any other that the run's launcher has is its own."""
_BESIDE_SETTING = [name for name in Change.model_fields if name not in ("plan", "setting")]


@dataclass(frozen=True)
class Supposed:
    """A supposed run, and a plan in it."""

    inquiry: Inquiry
    study: Study
    plan: Plan
    notes: tuple[str, ...]
    settings: str = ""
    """Of the launcher and beside every plan, that differ: ``,local_batch_size=4``."""
    same_program: bool = False
    """Whether nothing but a setting differs."""

    def prediction(self) -> Prediction:
        """What is expected of it, starting from the measured step of what runs where predictions of plans do; raises
        like :func:`asap.prediction.predict_study.expect`."""
        known, now = self.inquiry.study, self.inquiry.study.plan
        if self.study is known:
            return self.inquiry.predictions([self.plan])[0]
        found = expect(self.study, [read_plan(self.study, str(self.plan))])[0]
        if found.step_time is None:
            raise InsufficientEvidenceError(
                "its step time follows from the architecture, which is not on record", where=self.study.experiment.id,
                hint="`asap experiments add ID --config FILE`",
            )  # fmt: skip
        if now is None or found.method != "architecture":
            return found
        (alone,) = expect(drop_step_time(known, known.experiment), [now])
        return carried_over(known, alone, found, self.study.slice, same_program=self.same_program)


def suppose(inquiry: Inquiry, change: Change, *, accumulates: bool = True) -> Supposed:
    """The run with a change, its plan scaled to other hardware.

    Args:
        inquiry: the run.
        change: of it.
        accumulates: a larger batch takes more micro-batches where the stack sets their size and accumulates them.

    Raises:
        AsapError: the change cannot be read, or the plan cannot run so.
    """
    study, change = inquiry.study, _with_size(inquiry.study, change)
    words, trial = _without_setting(change, study)
    rest, own = _without_own(words, study)
    if not change.changes and trial is None and not own:
        return Supposed(inquiry, study, inquiry.plan(change.plan), ())
    now = study
    if own:
        study = drop_step_time(study, apply_launcher_settings(study.experiment, own))
    name, size = without_micro_batch(rest)
    plan = inquiry.plan(name or "now") if study is now else _plan_beside(study, name)
    scaled = _on_hardware(study, plan, change)
    hardware, topology, slices = _hardware(study, change)
    count = change.global_batch
    batch = study.experiment.workload.global_batch if count is None and scaled.devices != plan.devices else count
    if size is not None:
        scaled = of_micro_batch(scaled, size, count or study.experiment.workload.global_batch)
    elif batch is not None and accumulates and study.keeps_micro_batch:
        accumulated = _same_micro_batch(study, plan, scaled, batch)
        written = accumulated.model_copy(update={"global_batch": count})
        scaled = accumulated if why_not_launched(study, written) is None else scaled
    said = Statement(
        plan=str(scaled), hardware=hardware, topology=topology, slices=slices, global_batch=count,
        sequence_length=change.sequence_length, network=change.network,
    )  # fmt: skip
    fields = ({"precision": change.precision} if change.precision else {}) | _optimizer(change.optimizer)
    changed = changed_study(study, said, fields | (_effect_of(trial, study) if trial else {}))
    if changed.slice == now.slice and changed.experiment.workload != now.experiment.workload:
        changed = replace(changed, outcomes=_outcomes_under(now))
    elif changed.slice == now.slice:
        changed = replace(changed, outcomes=outcomes_of(now))
    new = [one for one in changed.warnings if one not in now.warnings and not one.endswith(NOT_USED)]
    if own and _modelled(study) == _modelled(now):
        why = _UNUSED if modelled_by_none(study.experiment, own) else _IDLE
        new.insert(0, f"{', '.join(f'{key}={value}' for key, value in own.items())} {why}.")
    alone = trial is not None and scaled == study.plan and not any(getattr(change, name) for name in _BESIDE_SETTING)
    named = [f"{key}={value}" for key, value in own.items()] + ([trial.name] if trial and not change.setting else [])
    settings = "".join(f",{one}" for one in named)
    return Supposed(inquiry, changed, scaled, tuple(new), settings, same_program=alone)


_UNUSED = "may change the step, and no prediction uses it: measure it"
_IDLE = "changes nothing that is predicted"


def _without_setting(change: Change, study: Study) -> tuple[str, Trial | None]:
    """The plan of a change without the setting in it, and the setting: by its name, or as the line to paste says it.

    Raises:
        UsageError: the run has it, or it is none.
    """
    run = run_of(study)
    offered = {one.name: one for one in TRIALS if one.settings(run)}
    lines = {_leaf(f"{key}={value}"): one for one in offered.values() for key, value in one.settings(run).items()}
    words = {word: lines.get(_leaf(word)) for word in change.plan.split()}
    found = next(filter(None, words.values()), None)
    if change.setting is None:
        return " ".join(word for word, trial in words.items() if trial is None), found
    name = change.setting.lower().replace(" ", "_").replace(".", "_")
    if name not in offered:
        raise UsageError("is no setting that is offered for this run", where=change.setting, hint="settings lists them")
    return change.plan, offered[name]


def _without_own(words: str, study: Study) -> tuple[str, dict[str, str]]:
    """The plan without settings in the words of the run's launcher, and these, with whole keys."""
    left, found = list[str](), dict[str, str]()
    for word in words.split():
        key, _, value = word.partition("=")
        ours = not value or key.removeprefix("dcn.").removeprefix("ici.") in _OF_PLANS
        if ours or (whole := key_of_launcher(study.experiment, key)) is None:
            left.append(word)
        else:
            found[whole] = value
    return " ".join(left), found


def _plan_beside(study: Study, text: str) -> Plan:
    """A plan of a study whose settings were read anew."""
    assert study.plan is not None
    return study.plan if text in ("", "now") else read_plan(study, in_full(text, study.plan, study.plan, changes=True))


def _modelled(study: Study) -> tuple[object, ...]:
    return study.plan, study.experiment.workload, study.experiment.model


def _leaf(setting: str) -> str:
    """``--a.b.Key=Value`` as ``key=value``."""
    key, _, value = setting.lower().lstrip("-").partition("=")
    return f"{key.rpartition('.')[2]}={value}"


def _effect_of(trial: Trial, study: Study) -> dict[str, object]:
    if not (changed := trial.changed(run_of(study))):
        raise InsufficientEvidenceError("only a run tells what it brings", where=trial.title, hint="settings")
    return dict(changed)


def _outcomes_under(study: Study) -> tuple[MemoryOutcome, ...]:
    """What is known of the HBM of the run, each under the workload that it was of."""
    now = study.experiment.workload
    return tuple(replace(one, workload=one.workload or now) for one in outcomes_of(study))


def _hardware(study: Study, change: Change) -> tuple[str | None, str | None, int | None]:
    """Name, topology and slices: so many of the chips of now are slices like those of now where no single one has them.

    Raises:
        InsufficientEvidenceError: the hardware of now is not on record.
    """
    if change.chips is None:
        return change.hardware, None, change.slices
    now = study.slice
    if now is None:
        raise InsufficientEvidenceError("the hardware is not on record", where=study.experiment.id, hint="--hardware")
    chips = change.chips * now.chips // now.devices
    alone = now.chip.torus is None or default_topology(now.chip, chips) is not None
    if alone or chips % now.chips_per_slice:
        return f"{now.chip.name}-{change.chips * now.chip.cores}", None, change.slices
    name, shape = study.experiment.hardware.name or now.chip.name, now.topology
    return name, "x".join(map(str, shape)) if shape else None, chips // now.chips_per_slice


def _with_size(study: Study, change: Change) -> Change:
    """The change with the size of a chip that is named alone: so many as are said, else as many as run now."""
    found = find_chip(change.hardware) if change.hardware else None
    count = change.chips or (study.slice.devices if study.slice else None)
    if found is None or count is None:
        return change
    name = f"{found.chip.name}-{count // found.chip.devices * found.chip.cores}"
    return change.model_copy(update={"hardware": name, "chips": None})


def _optimizer(name: str | None) -> dict[str, object]:
    """What the name of an optimizer says of a workload; raises UsageError where it is of none that is known."""
    if name is None:
        return {}
    fields = optimizer_fields(name)
    if fields["optimizer"].removeprefix(f"{PAGED} ") not in FAMILIES:
        raise UsageError("is no optimizer that is known", where=name, hint=f"one of {', '.join(FAMILIES)}")
    return dict(fields)


def _on_hardware(study: Study, plan: Plan, change: Change) -> Plan:
    if change.slices is not None and not (change.hardware or change.chips):
        one = plan.model_copy(update={"dcn": Mesh()})
        return one.model_copy(update={"dcn": Mesh(replica=change.slices)}) if change.slices > 1 else one
    devices = change.chips
    if change.hardware:
        devices = refer_to_hardware(change.hardware, slices=change.slices)[0].devices
    if devices is None or devices == plan.devices:
        return plan
    return over_devices(plan, devices, _hardware(study, change)[2] or 1)


def _same_micro_batch(study: Study, plan: Plan, scaled: Plan, batch: int) -> Plan:
    """Stacks that set the size of a micro-batch keep it, and run more of them."""
    before, count = study.experiment.workload.global_batch, plan.microbatches
    if not before or not count:
        return scaled
    number, rest = divmod(count * batch * plan.batch_shards, before * scaled.batch_shards)
    return scaled if rest or not number else scaled.model_copy(update={"microbatches": number})


def kept_batch(change: Change, inquiry: Inquiry, chips: float) -> tuple[str, ...]:
    """That more devices divide the same batch, and what a launcher that states it for each device would run."""
    batch = inquiry.study.experiment.workload.global_batch
    if chips == 1 or not batch or change.global_batch is not None:
        return ()
    each = batch * chips
    larger = f"; a launcher that states it for each device runs {exact(each)}: batch={as_setting(each)}"
    return (f"The batch stays {batch:,} sequences{larger if each.is_integer() else ''}.",)


def batch_on(experiment: Experiment) -> str | None:
    """``256 sequences of 8,192 tokens on v5e-256``, as far as it is known."""
    work, hardware = experiment.workload, experiment.hardware.name or experiment.hardware.chip
    if not work.global_batch or not work.sequence_length:
        return None
    return f"{work.global_batch:,} sequences of {work.sequence_length:,} tokens on {hardware}"
