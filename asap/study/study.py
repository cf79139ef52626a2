"""A Study: one experiment with its profile, its hardware and its diagnosis, looked up once."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from asap.core.errors import AsapError, PlanError
from asap.core.text import plain
from asap.core.units import Provenance
from asap.diagnosis.diagnose import diagnose
from asap.diagnosis.diagnosis import Diagnosis
from asap.diagnosis.facts import Shares, shares_of
from asap.experiments import Experiment, HardwareReference
from asap.experiments.experiment import resolve_reference
from asap.hardware import Chip, Slice, find_chip
from asap.models import Workload
from asap.plans import Plan
from asap.plans.degrees import keeping_micro_batch
from asap.plans.validity import Constraints, require_valid, violations
from asap.profiles import Profile
from asap.stacks.constraints import constraints_of
from asap.stacks.launchers import contract_of, is_of_jax, refusal_of_layout, stack_of
from asap.study.measurements import check_measurements, stated_profile
from asap.study.start import assume_start
from asap.traces.analysis.report import ReplayReport


@dataclass(frozen=True)
class Preferences:
    """Preferences of a user; none by default.

    Args:
        allowed: levers on request that may be pulled.
        steps_to_go: steps that are still to be trained.
        prices: of a chip-hour, by chip.
        currency: of the prices.
    """

    allowed: frozenset[str] = frozenset()
    steps_to_go: int | None = None
    prices: Mapping[str, float] = field(default_factory=dict)
    currency: str = "USD"

    def to_record(self) -> dict[str, Any]:
        """For the worklog."""
        return {**asdict(self), "allowed": sorted(self.allowed)}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> "Preferences":
        """As it was recorded; older sessions have none."""
        return cls(**{**record, "allowed": frozenset(record.get("allowed", ()))})


NO_PREFERENCES = Preferences()
BREAKS = "The plan on record breaks a rule:"


@dataclass(frozen=True)
class MemoryOutcome:
    """One outcome.

    Args:
        plan: that was run, or compiled.
        fitted: whether it did; None where a peak alone is known.
        peak_bytes: of the fullest device.
        source: who says so.
        workload: under which it was; None: that on record.
        provenance: of the peak.
    """

    plan: Plan
    fitted: bool | None = None
    peak_bytes: float | None = None
    source: str = "a run"
    workload: Workload | None = None
    provenance: Provenance = Provenance.MEASURED


def outcome_of_log(experiment: Experiment) -> MemoryOutcome | None:
    """What the log of the run says of its memory: it ran out, it ran within its peak; ``None`` where neither.

    What the allocator holds counts where it is known, else what it gave, else what XLA says that the program needs.
    """
    observed, plan = experiment.observed, experiment.plan
    if observed is None or plan is None:
        return None
    measured, ending = observed.measured, observed.ending
    if ending.kind == "out_of_memory":
        return MemoryOutcome(plan, False, ending.needed_bytes, observed.file)
    seen = measured.reserved_memory_bytes or measured.peak_memory_bytes
    peak, provenance = seen or measured.compiled_memory_bytes, Provenance.MEASURED if seen else Provenance.COMPILED
    ran = measured.step.steps > 0 or measured.tokens_per_second_per_device is not None
    return MemoryOutcome(plan, True, peak, observed.file, provenance=provenance) if ran and peak else None


@dataclass(frozen=True)
class Study:
    """Everything that is known of a run before anything is proposed."""

    experiment: Experiment
    profile: Profile | None
    slice: Slice | None
    constraints: Constraints
    warnings: tuple[str, ...] = ()
    preferences: Preferences = NO_PREFERENCES
    recording: Path | None = None
    outcomes: tuple[MemoryOutcome, ...] = ()

    @property
    def plan(self) -> Plan | None:
        """The plan that runs now, if it is known."""
        return self.experiment.plan

    @property
    def keeps_micro_batch(self) -> bool:
        """Whether another mesh runs with the same micro-batch, as launchers of PyTorch stacks set it, not a count."""
        plan, workload = self.plan, self.experiment.workload
        known = plan is not None and plan.microbatches is not None and workload.global_batch is not None
        return known and contract_of(workload.framework).sets_micro_batch

    def complete(self, plan: Plan) -> Plan:
        """A plan with what it leaves out as it is in the plan that runs: settings, DCN mesh, size of a micro-batch."""
        whole = plan.completed_by(self.plan)
        return whole if "microbatches" in plan.model_fields_set else self.keep_micro_batch(whole)

    def keep_micro_batch(self, plan: Plan) -> Plan:
        """A plan with the micro-batch of the plan that runs, where that is what stays."""
        batch = self.experiment.workload.global_batch
        if not self.keeps_micro_batch or self.plan is None or batch is None:
            return plan
        return keeping_micro_batch(plan, self.plan, batch)

    @cached_property
    def chip(self) -> Chip | None:
        """What it runs on: by the record, else by what the profile calls its device."""
        if self.slice is not None:
            return self.slice.chip
        named = find_chip(self.profile.device_type) if self.profile and self.profile.device_type else None
        return named.chip if named else None

    @cached_property
    def shares(self) -> Shares | None:
        """Where the time goes, if there is a profile."""
        return shares_of(self.profile, self.chip) if self.profile else None

    @cached_property
    def diagnosis(self) -> Diagnosis:
        """What holds the run back."""
        only_a_time = self.profile is not None and self.profile.stated and not self.profile.operations
        framework, settings = self.experiment.workload.framework, self.experiment.hyperparameters
        profile, stack = None if only_a_time else self.profile, stack_of(framework) if framework else None
        return diagnose(profile, self.plan, self.chip, stack, self.replay, settings)

    @cached_property
    def replay(self) -> ReplayReport | None:
        """What the replay of the recording shows; ``None`` if there is none, or nothing in it to replay."""
        if self.recording is None:
            return None
        from asap.traces.recording import read_graph
        from asap.traces.summary import report_replay

        try:
            return report_replay(read_graph(self.recording))
        except AsapError:
            return None


def study_of(experiment: Experiment, profile: Profile | None = None, recording: Path | None = None) -> Study:
    """A study of a record that need not be in a store.

    Args:
        experiment: the record.
        profile: what was measured.
        recording: what the profile was read from, if it can be replayed.

    Raises:
        ConfigError: the hardware contradicts itself, or the measurement cannot be of this run.
        PlanError: the plan does not fit the number of devices.
    """
    if profile is not None and profile.framework == "pytorch" and experiment.workload.framework is None:
        workload = experiment.workload.model_copy(update={"framework": "PyTorch"})
        experiment = experiment.model_copy(update={"workload": workload})
    hardware, notes = _hardware(experiment.hardware)
    constraints = _constraints(experiment, hardware)
    if profile is None:
        experiment = assume_start(experiment, hardware, constraints)
    if profile is None and experiment.measured is not None:
        profile = stated_profile(experiment.measured)
    if profile is not None and profile.kpis.goodput is None and experiment.goodput is not None:
        kpis = profile.kpis.model_copy(update={"goodput": experiment.goodput})
        profile = profile.model_copy(update={"kpis": kpis})
    warnings = dict.fromkeys((*notes, *experiment.notes, *(profile.warnings if profile else ())))
    study = Study(experiment, profile, hardware, constraints, tuple(warnings), recording=recording)
    doubts = (*check_measurements(experiment, profile, hardware), *_check_stack(experiment, hardware))
    return replace(study, warnings=(*doubts, *study.warnings, *_check_incumbent(study)))


def read_plan(study: Study, text: str) -> Plan:
    """A plan in the text form, with what it leaves out as in :meth:`Study.complete`.

    Raises:
        PlanError: it is not a plan, or breaks a rule that can be checked.
    """
    plan = study.complete(Plan.parse(text))
    require_valid(plan, study.constraints)
    return plan


def _hardware(reference: HardwareReference) -> tuple[Slice | None, tuple[str, ...]]:
    name = reference.name or reference.chip
    if name is None:
        return None, ()
    if find_chip(reference.chip or name) is None and reference.chip is not None:
        return None, (f"Nothing is known of the chip {plain(reference.chip, 40)!r}: its limits cannot be used.",)
    resolved = resolve_reference(reference)
    return resolved.slice, resolved.notes


def _constraints(experiment: Experiment, hardware: Slice | None) -> Constraints:
    plan = experiment.plan
    if hardware is not None and hardware.chip.torus is not None:
        slices, devices = hardware.slices, hardware.devices_per_slice
    else:
        slices = plan.dcn.devices if plan else experiment.hardware.slices
        total = hardware.devices if hardware else experiment.hardware.devices or (plan.devices if plan else None)
        devices = total // slices if total else None
    return constraints_of(experiment.model, experiment.workload, devices, slices)


def _check_stack(experiment: Experiment, hardware: Slice | None) -> tuple[str, ...]:
    if hardware is None:
        return ()
    chip, framework, said = hardware.chip, experiment.workload.framework, experiment.workload.precision or ""
    narrow = next((kind for kind in ("fp8", "fp4", "int8") if kind in said.casefold()), None)
    doubts = {
        f"{plain(framework, 40)} runs on GPUs, and {chip.title} is none: is the hardware right?": chip.kind == "tpu"
        and not is_of_jax(framework),
        f"{chip.title} does not multiply in {narrow}: its bf16 rate is taken. Is the hardware right?": narrow
        and narrow not in chip.peak_flops,
    }
    return tuple(doubt for doubt, holds in doubts.items() if holds)


def _check_incumbent(study: Study) -> tuple[str, ...]:
    if study.plan is None:
        return ()
    on_record = replace(study.constraints, split=study.constraints.split.on_record())
    broken = violations(study.plan, on_record)
    fatal = next((v for v in broken if v.rule in {"devices", "slices"}), None)
    if fatal is not None:
        hint = f"it is {study.plan}: name its hardware, or say --plan"
        raise PlanError(fatal.sentence, where=f"plan of {study.experiment.id}", hint=hint)
    experiment, topology = study.experiment, study.slice.topology if study.slice else None
    layout = refusal_of_layout(study.plan, experiment.workload.framework, experiment.hyperparameters, topology)
    return tuple(f"{BREAKS} {why}." for why in (*(violation.sentence for violation in broken), layout) if why)
