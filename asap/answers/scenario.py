"""A run with something else than its plan changed: batch, sequence, chips, slices, precision, optimizer."""

from dataclasses import dataclass, replace
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from asap.answers.figure import PlanName
from asap.answers.inquiry import Inquiry
from asap.answers.plan_names import of_micro_batch, without_micro_batch
from asap.core.errors import InsufficientEvidenceError, UsageError
from asap.evidence.effect import carried_over
from asap.experiments.create import NOT_USED, Statement
from asap.experiments.experiment import refer_to_hardware
from asap.hardware import default_topology
from asap.plans import Plan
from asap.plans.plan import Mesh
from asap.plans.torus import over_devices
from asap.prediction.memory_outcomes import outcomes_of
from asap.prediction.predict_study import expect
from asap.prediction.prediction import Prediction
from asap.proposals.launch import why_not_launched
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

    @property
    def changes(self) -> bool:
        """Whether anything beside the plan differs."""
        return bool(self.label)

    @property
    def label(self) -> str:
        """What differs beside the plan: ``,global_batch=512``."""
        said = ((name, getattr(self, name)) for name in Change.model_fields if name != "plan")
        return "".join(f",{name}={value}" for name, value in said if value is not None)


@dataclass(frozen=True)
class Supposed:
    """A supposed run, and a plan in it."""

    inquiry: Inquiry
    study: Study
    plan: Plan
    notes: tuple[str, ...]

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
                hint="asap experiments add ID --config FILE",
            )  # fmt: skip
        if now is None or found.method != "architecture":
            return found
        (alone,) = expect(drop_step_time(known, known.experiment), [now])
        return carried_over(known, alone, found, self.study.slice)


def suppose(inquiry: Inquiry, change: Change, *, accumulates: bool = True) -> Supposed:
    """The run with a change, its plan scaled to other hardware.

    Args:
        inquiry: the run.
        change: of it.
        accumulates: a larger batch takes more micro-batches where the stack sets their size and accumulates them.

    Raises:
        UsageError: hardware and chips at once.
        AsapError: the change cannot be read, or the plan cannot run so.
    """
    if not change.changes:
        return Supposed(inquiry, inquiry.study, inquiry.plan(change.plan), ())
    name, size = without_micro_batch(change.plan)
    study, plan = inquiry.study, inquiry.plan(name or "now")
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
    changed = changed_study(study, said, change.precision, change.optimizer)
    if changed.slice == study.slice:
        changed = replace(changed, outcomes=_outcomes_under(study))
    new = (one for one in changed.warnings if one not in study.warnings and not one.endswith(NOT_USED))
    return Supposed(inquiry, changed, scaled, tuple(new))


def _outcomes_under(study: Study) -> tuple[MemoryOutcome, ...]:
    """What is known of the HBM of the run, each under the workload that it was of."""
    now = study.experiment.workload
    return tuple(replace(one, workload=one.workload or now) for one in outcomes_of(study))


def _hardware(study: Study, change: Change) -> tuple[str | None, str | None, int | None]:
    """Name, topology and slices: so many of the chips of now are slices like those of now where no single one has them.

    Raises:
        UsageError: hardware and chips at once.
        InsufficientEvidenceError: the hardware of now is not on record.
    """
    if change.chips is None:
        return change.hardware, None, change.slices
    if change.hardware:
        raise UsageError("say the size with the hardware", where="chips", hint=f"{change.hardware}-{change.chips}")
    now = study.slice
    if now is None:
        raise InsufficientEvidenceError("the hardware is not on record", where=study.experiment.id, hint="--hardware")
    chips = change.chips * now.chips // now.devices
    alone = now.chip.torus is None or default_topology(now.chip, chips) is not None
    if alone or chips % now.chips_per_slice:
        return f"{now.chip.name}-{change.chips * now.chip.cores}", None, change.slices
    name, shape = study.experiment.hardware.name or now.chip.name, now.topology
    return name, "x".join(map(str, shape)) if shape else None, chips // now.chips_per_slice


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
