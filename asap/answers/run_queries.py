"""Queries on the run as it is: what is on record, whether it is as fast as it should be, and what holds it back."""

from typing import Literal

from pydantic import Field

from asap.answers.figure import CHANGE, Answer, Figure, Lines, Part, Query, bare, figure
from asap.answers.inquiry import Inquiry
from asap.core.errors import InsufficientEvidenceError
from asap.core.units import Provenance
from asap.evidence.anchor import current_step_time
from asap.flags.document import FlagAdvice
from asap.profiles import Profile
from asap.proposals.reasons.modelled_step import modelled_step
from asap.study.flags import flags_of
from asap.study.study import Study

Verdict = Literal["as expected", "slower than expected", "faster than expected", "out of memory", "ran", "not known"]
_VERDICTS: dict[str, Verdict] = {
    "inside": "as expected", "slower": "slower than expected", "faster": "faster than expected",
    "out of memory": "out of memory", "ran": "ran",
}  # fmt: skip


class Fact(Part):
    """One fact and where it comes from."""

    fact: str
    value: str | None = None
    figure: Figure | None = None
    source: str | None = None


class RunAnswer(Answer):
    """What is on record of a run."""

    experiment: str
    plan: str | None
    step_time: Figure | None
    description: str | None
    model: str | None
    parameters: Figure | None
    hardware: str | None
    devices: int | None
    framework: str | None
    global_batch: int | None
    sequence_length: int | None
    precision: str | None
    optimizer: str | None
    measured_by: str | None
    settings: tuple[Fact, ...] = Field(default=(), description="what is on record, and who says so")
    warnings: tuple[str, ...] = ()


class Run(Query):
    """Look up what is on record of the run: model, batch, hardware, the plan that runs now. What is not in the answer
    is unknown, not zero."""

    def answer(self, inquiry: Inquiry) -> RunAnswer:
        """What is on record."""
        study = inquiry.study
        record, model, workload = study.experiment, study.experiment.model, study.experiment.workload
        said = modelled_step(study, inquiry.incumbent)
        of_model = said.parameters if said else None
        return RunAnswer(
            experiment=record.id,
            plan=str(study.plan) if study.plan else None,
            step_time=figure("now", "measured_step_time", current_step_time(study, inquiry.facts)),
            description=record.description,
            model=model.name if model else None,
            parameters=bare("run", "parameters", of_model, "parameters", "the architecture", Provenance.STATED),
            hardware=record.hardware.name or record.hardware.chip,
            devices=study.slice.devices if study.slice else record.hardware.devices,
            framework=workload.framework,
            global_batch=workload.global_batch,
            sequence_length=workload.sequence_length,
            precision=workload.precision,
            optimizer=workload.optimizer,
            measured_by=_origin(study.profile) if study.profile else None,
            settings=tuple(Fact(fact=key, source=source) for key, source in list(record.provenance.items())[:12]),
            warnings=study.warnings,
        )


class CauseRow(Part):
    """What may explain a step that is not as expected."""

    cause: str
    weight: Figure | None = Field(description="beside the other causes")
    expects: str = Field(description="what else would then be seen")
    check: str = Field(description="what tells")


class HealthAnswer(Answer):
    """The run as measured against what is expected of it."""

    verdict: Verdict
    statement: str | None = None
    measured: Figure | None
    expected: Figure | None = Field(description="by the step model alone, without the measurement")
    differs: Figure | None = Field(description="the measured step against the expected one")
    mfu: Figure | None = Field(description="that the measured step amounts to")
    asked: str | None = Field(default=None, description="where it can only be a mistake of units or counting")
    causes: tuple[CauseRow, ...] = Field(default=(), description="the likeliest first")
    kpis: tuple[Fact, ...] = ()
    warnings: tuple[str, ...] = ()


class Health(Query):
    """Say whether the run is as fast as its model, batch and hardware let expect, and what may explain it where it is
    not: the measured step beside the modelled one, MFU, duty cycle, goodput."""

    def answer(self, inquiry: Inquiry) -> HealthAnswer:
        """Measured beside expected."""
        study = inquiry.study
        found, measured = inquiry.judgement, current_step_time(study, inquiry.facts)
        if found is None:
            expected = inquiry.incumbent
            missing = "No step was measured: give --step-time, or `ran now = 4.1s` in a chat."
            return HealthAnswer(
                verdict="not known", statement=None if measured else missing,
                measured=figure("now", "measured_step_time", measured),
                expected=figure("now", "step_time", expected.step_time) if expected and not measured else None,
                differs=None, mfu=figure("now", "mfu", expected.mfu) if expected else None,
                kpis=kpis_of(study), warnings=study.warnings,
            )  # fmt: skip
        kind = measured.provenance if measured else Provenance.MEASURED
        return HealthAnswer(
            verdict=_VERDICTS[found.verdict],
            statement=found.statement,
            measured=figure("now", "measured_step_time", measured),
            expected=figure("now", "expected_hbm" if found.held_bytes else "expected_step_time", found.expected),
            differs=bare("now", "measured_vs_expected", found.factor - 1, CHANGE, "measured over expected", kind)
            if found.measured_s
            else None,
            mfu=bare("now", "measured_mfu", found.mfu, "fraction", "FLOPs of the model over the measured step", kind),
            asked=found.asked,
            causes=tuple(
                CauseRow(
                    cause=one.statement,
                    weight=bare("now", f"cause.{one.name}", one.weight, "fraction", "Bayes", Provenance.MODELLED),
                    expects=one.expects,
                    check=one.check,
                )
                for one in found.causes
            ),
            kpis=kpis_of(study),
            warnings=study.warnings,
        )


class FindingRow(Part):
    """One finding of the diagnosis."""

    kind: str
    share: Figure | None
    finding: str
    advice: str | None


class BottleneckAnswer(Answer):
    """What holds the run back."""

    bottleneck: str
    basis: Literal["measured", "modelled", "not known"]
    statement: str = Field(description="what was measured says")
    modelled: str | None = Field(default=None, description="what the model says, where nothing was measured")
    shares: tuple[Fact, ...] = Field(default=(), description="share of the step by what it waits for")
    findings: tuple[FindingRow, ...] = ()
    evidence: tuple[Fact, ...] = ()
    correlation: tuple[str, ...] = ()
    missing: tuple[str, ...] = Field(default=(), description="what a further capture would tell")


class Bottleneck(Query):
    """Name what holds the run back, with the share of the step that waits for it, each finding with its evidence, and
    what is missing to be surer."""

    def answer(self, inquiry: Inquiry) -> BottleneckAnswer:
        """The diagnosis; the model's word, and said to be so, where nothing was measured."""
        study = inquiry.study
        found, shares = study.diagnosis, study.shares
        modelled = modelled_step(study, inquiry.incumbent)
        rows: tuple[Fact, ...] = ()
        name, basis = found.bottleneck.value, "measured"
        if shares is not None and shares.coverage:
            source, kind = _source(study)
            rows = tuple(
                Fact(fact=resource, figure=bare("now", f"share.{resource}", share, "fraction", source, kind))
                for resource, share in sorted(shares.time.items(), key=lambda pair: -pair[1]) if share
            )  # fmt: skip
        elif modelled is not None:
            name, basis = modelled.bottleneck, "modelled"
            rows = tuple(
                Fact(
                    fact=one.name,
                    figure=bare("now", f"share.{one.name}", one.fraction, "fraction", "model", Provenance.MODELLED),
                )
                for one in modelled.shares
            )
        elif name == "insufficient_evidence":
            basis = "not known"
        return BottleneckAnswer(
            bottleneck=name.replace("_", " "),
            basis=basis,
            statement=found.statement,
            modelled=modelled.statement if modelled and basis == "modelled" else None,
            shares=rows,
            findings=tuple(
                FindingRow(
                    kind=one.kind.value.replace("_", " "),
                    share=bare("now", f"finding.{one.rule}", one.share, "fraction", "diagnosis"),
                    finding=one.statement,
                    advice=one.advice,
                )
                for one in found.findings
            ),
            evidence=tuple(
                Fact(fact=proof.fact, figure=figure("now", f"evidence.{one.rule}.{number}", proof.quantity))
                for one in found.findings
                for number, proof in enumerate(one.evidence, 1)
            ),
            correlation=(*found.inefficiencies, *found.correlation),
            missing=tuple(gap.what for gap in found.missing),
        )


class CaptureRow(Part):
    """One thing that is not known, and what would record it."""

    missing: str
    capture: str | None


class CaptureAnswer(Answer):
    """What to record next."""

    captures: Lines
    missing: tuple[CaptureRow, ...] = ()


class Capture(Query):
    """Say what to record to know more, with the setting or command that gives it; `asap analyze PROFILE` reads it."""

    def answer(self, inquiry: Inquiry) -> CaptureAnswer:
        """What the diagnosis misses."""
        gaps = inquiry.study.diagnosis.missing
        rows = tuple(CaptureRow(missing=gap.what, capture=gap.capture) for gap in gaps)
        return CaptureAnswer(captures=tuple(dict.fromkeys(row.capture for row in rows if row.capture)), missing=rows)


class FlagRow(Part):
    """A flag, and what is said of it."""

    flag: str
    verdict: Literal["set", "missing", "harmful", "obsolete", "contradictory"]
    value: str | None = None
    why: str | None = None
    source: str | None = None


def _advised(advice: FlagAdvice) -> FlagRow:
    values = " ".join(advice.flags.values())
    why = f"{advice.title}: {advice.reason}"
    return FlagRow(flag=", ".join(advice.flags), verdict=advice.kind, value=values, why=why, source=advice.source)


class FlagsAnswer(Answer):
    """Flags of compilers and runtimes."""

    exports: Lines
    on_record: bool = Field(description="where it is false, what is missing may be set all the same")
    flags: tuple[FlagRow, ...] = ()


class Flags(Query):
    """Review the flags of compilers and runtimes: what the run sets, what it lacks for its plan, what does harm, and
    the lines to paste."""

    def answer(self, inquiry: Inquiry) -> FlagsAnswer:
        """The review."""
        found = flags_of(inquiry.study)
        rows = [_advised(advice) for advice in (*found.missing, *found.unwise)]
        rows += [FlagRow(flag=one.name, verdict="set", value=one.value, why=one.purpose) for one in found.set]
        return FlagsAnswer(exports=found.exports, on_record=found.on_record, flags=tuple(rows))


def profile_of(study: Study) -> Profile:
    """The profile of a run.

    Raises:
        InsufficientEvidenceError: there is none.
    """
    if study.profile is None:
        raise InsufficientEvidenceError(
            "there is no profile of this run", where=study.experiment.id, hint="`capture` says what to record"
        )
    return study.profile


def kpis_of(study: Study) -> tuple[Fact, ...]:
    """The KPIs that are known."""
    if study.profile is None:
        return ()
    kpis, (source, kind) = study.profile.kpis, _source(study)
    units = {"steps": "1"}
    rows = [
        Fact(fact=name.removesuffix("_s").replace("_", " "), figure=bare("now", name, value, unit, source, kind))
        for name, value in kpis.model_dump(exclude={"collectives"}).items()
        if value is not None and (unit := units.get(name) or ("s" if name.endswith("_s") else "fraction"))
    ]
    rows += [
        Fact(fact=one.kind, figure=bare("now", f"collective.{one.kind}", one.fraction, "fraction", source, kind))
        for one in kpis.collectives
    ]
    return tuple(rows)


def _origin(profile: Profile) -> str:
    lead = "stated by" if profile.provenance is Provenance.STATED else "measured, from"
    return f"{lead} {profile.source}; times are per {profile.extent}"


def _source(study: Study) -> tuple[str, Provenance]:
    profile = study.profile
    if profile is None:
        return "", Provenance.MODELLED
    return profile.source, profile.provenance
