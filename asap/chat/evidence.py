"""Evidence: facts about this run, stated by an engineer or found by the compiler, and their effect on the candidates.

Only facts move a ranking: a plan that was run, or a figure of the run that was wrong or missing on record. An opinion
has no form here, so it cannot be recorded.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, get_args

from pydantic import BaseModel, ConfigDict, Field

from asap.core.provenance import Provenance, Quantity
from asap.core.units import format_bytes, format_percent
from asap.experiments import Experiment
from asap.experiments.create import Statement, amend
from asap.plans import AXES, Plan
from asap.plans.axes import Axis
from asap.prediction.prediction import Prediction
from asap.proposals.selection.candidate import Candidate, fits
from asap.proposals.selection.ranked_candidates import RankedCandidates
from asap.study.study import Study

if TYPE_CHECKING:
    from asap.compiler.verification import Verification


class Claim(StrEnum):
    """What is stated."""

    OUT_OF_MEMORY = "ran out of memory"
    FITS = "fits into memory"
    FAILED = "failed"
    SLOWER = "was slower"
    FASTER = "was faster"
    STEP_TIME = "measured step time"
    RELATIVE = "measured step time against what runs"
    BATCH = "global batch"
    SEQUENCE = "sequence length"
    INCUMBENT = "plan that runs"
    MFU = "measured MFU"
    THROUGHPUT = "measured tokens per second"
    HBM_SHARE = "HBM in use"
    HBM_BYTES = "HBM in use, bytes"
    CONSTRAINT = "constraint"


EXCLUDING_CLAIMS = {Claim.OUT_OF_MEMORY, Claim.FAILED, Claim.SLOWER}
"""A plan of which this is known is not proposed again."""

RUN_CLAIMS = {Claim.BATCH, Claim.SEQUENCE, Claim.INCUMBENT}
"""Facts of the run itself."""

WORKED_OUT = "worked out from the measured step of another plan"
"""Source of a step time of what runs now that nobody measured: predictions start from it, and no answer quotes it."""

MEASURED_CLAIMS = {Claim.STEP_TIME, Claim.RELATIVE, Claim.MFU, Claim.THROUGHPUT, Claim.HBM_SHARE, Claim.HBM_BYTES}
"""Measurements: a later one of the same plan takes the place of an earlier one."""


class StatedFact(BaseModel):
    """One stated fact."""

    model_config = ConfigDict(frozen=True)

    claim: Claim
    plan: Plan | None = Field(default=None, description="the plan that was run, or that runs now")
    value: float | None = Field(
        default=None, description="seconds, fraction of the incumbent's step, bytes, tokens a second, or a count"
    )
    stated: float | None = Field(default=None, description="the number as it was said, where value is worked out of it")
    unit: str | None = Field(default=None, description="of the number as it was said: % slower, % faster, x faster, %")
    about: str | None = Field(default=None, description="what a constraint is about: an axis, batch, sequence, …")
    words: str = Field(description="the sentence of the engineer, or the verdict of the compiler")
    compiled: bool = Field(default=False, description="found by the compiler")
    session: str | None = Field(default=None, description="session of asap optimize that measured it")

    @property
    def origin(self) -> str:
        """Who says so."""
        if self.session is not None:
            return f"measured by session {self.session}"
        return "by the TPU compiler" if self.compiled else "stated by you"

    def __str__(self) -> str:
        subject = f"{self.plan} " if self.plan is not None and self.claim is not Claim.INCUMBENT else ""
        match self.claim:
            case Claim.STEP_TIME:
                text = f"measured {self.value:g} s"
            case Claim.RELATIVE:
                text = f"measured {self.value:.3g} of the step that runs now"
            case Claim.BATCH | Claim.SEQUENCE:
                text = f"{self.claim.value} {self.value:g}"
            case Claim.INCUMBENT:
                text = f"{self.claim.value} {self.plan}"
            case Claim.OUT_OF_MEMORY if self.compiled:
                text = "does not fit"
            case Claim.MFU:
                text = f"{self.claim.value} {format_percent(self.value or 0)}"
            case Claim.HBM_SHARE:
                text = f"{self.claim.value} {format_percent(self.value or 0)}"
            case Claim.HBM_BYTES:
                text = f"HBM in use {format_bytes(self.value or 0)}"
            case Claim.THROUGHPUT:
                text = f"{self.claim.value} {self.value:g}"
            case Claim.CONSTRAINT:
                text = self._constraint
            case _:
                text = self.claim.value
        return f"{subject}{text}"

    @property
    def _constraint(self) -> str:
        if self.about not in AXES:
            return f"constraint: the {self.about} stays as it is"
        return (
            f"constraint: {self.about}={self.value:g} cannot be used"
            if self.value
            else f"constraint: no {self.about} axis"
        )

    def forbids(self, plan: Plan) -> bool:
        """Whether a constraint rules a plan out."""
        axis = next((axis for axis in get_args(Axis) if axis == self.about), None)
        if self.claim is not Claim.CONSTRAINT or axis is None:
            return False
        return plan.degree(axis) == self.value if self.value else plan.degree(axis) > 1

    def supersedes(self, earlier: "StatedFact") -> bool:
        """Whether this takes the place of an earlier fact: the same figure of the same plan, measured again."""
        same = (self.claim, self.plan, self.about) == (earlier.claim, earlier.plan, earlier.about)
        return same and self.claim in {*MEASURED_CLAIMS, *RUN_CLAIMS}


@dataclass(frozen=True)
class RevisedCandidates:
    """The candidates after the evidence, and those that it excluded."""

    ranked: RankedCandidates
    excluded: dict[Plan, StatedFact]


def with_run_claims(experiment: Experiment, evidence: Sequence[StatedFact]) -> Experiment:
    """The record with the stated facts of the run applied."""
    for item in evidence:
        if item.claim is Claim.INCUMBENT:
            experiment = amend(experiment, Statement(plan=str(item.plan)))
        elif item.value is not None and item.claim is Claim.BATCH:
            experiment = amend(experiment, Statement(global_batch=int(item.value)))
        elif item.value is not None and item.claim is Claim.SEQUENCE:
            experiment = amend(experiment, Statement(sequence_length=int(item.value)))
    return experiment


def apply_evidence(ranked: RankedCandidates, evidence: Sequence[StatedFact]) -> RevisedCandidates:
    """Take out plans that are known not to work, and put what was measured in place of what was predicted."""
    excluded: dict[Plan, StatedFact] = {}
    candidates, now = ranked.candidates, current_step_time(ranked.study, evidence)
    for item in evidence:
        if item.claim is Claim.CONSTRAINT:
            excluded |= {candidate.plan: item for candidate in candidates if item.forbids(candidate.plan)}
        if item.plan is None or item.claim in RUN_CLAIMS:
            continue
        if item.claim in EXCLUDING_CLAIMS:
            excluded |= {candidate.plan: item for candidate in candidates if _takes_out(item, candidate, candidates)}
        else:
            candidates = [_with_fact(item, c, now) if c.plan == item.plan else c for c in candidates]
            excluded.pop(item.plan, None)
    left = [candidate for candidate in candidates if candidate.plan not in excluded]
    left.sort(key=lambda c: (not fits(c.prediction), -c.score, str(c.plan)))
    return RevisedCandidates(replace(ranked, candidates=left), excluded)


def compiled_evidence(found: "Verification") -> list[StatedFact]:
    """What a verdict of the compiler says of memory; nothing where it gave none."""
    if found.fits is None:
        return []
    claim = Claim.FITS if found.fits else Claim.OUT_OF_MEMORY
    return [StatedFact(claim=claim, plan=found.plan, words=found.verdict, compiled=True)]


def current_step_time(study: Study, evidence: Sequence[StatedFact] = ()) -> Quantity | None:
    """Step time of the plan that runs now: stated, else measured by the profile."""
    for item in reversed(evidence):
        if item.claim is Claim.STEP_TIME and item.plan == study.plan and item.value:
            return stated(item, item.value, "s")
    profile = study.profile
    if profile is None or profile.kpis.step_time_s is None or profile.source == WORKED_OUT:
        return None
    kind = Provenance.STATED if profile.stated else Provenance.MEASURED
    return Quantity(value=profile.kpis.step_time_s, unit="s", provenance=kind, source=profile.source)


def stated(item: StatedFact, value: float, unit: str) -> Quantity:
    """A figure of the engineer, which has no interval."""
    return Quantity(
        value=value,
        unit=unit,
        provenance=Provenance.STATED,
        source=f"the engineer: {item.words}",
        low=value,
        high=value,
    )


def _takes_out(item: StatedFact, candidate: Candidate, candidates: Sequence[Candidate]) -> bool:
    """The plan itself, and after an out-of-memory whatever is modelled to need as much or more."""
    if candidate.plan == item.plan:
        return True
    known = next((c.prediction.memory for c in candidates if c.plan == item.plan), None)
    own = candidate.prediction.memory
    if item.claim is not Claim.OUT_OF_MEMORY or known is None or own is None:
        return False
    return own.total.value >= known.total.value


def _with_fact(item: StatedFact, candidate: Candidate, now: Quantity | None) -> Candidate:
    prediction = candidate.prediction
    if item.claim is Claim.FITS and prediction.memory is not None:
        memory = prediction.memory.model_copy(update={"fits": True})
        return replace(candidate, prediction=prediction.model_copy(update={"memory": memory}))
    ratio = _ratio(item, now)
    if ratio is None and item.claim is Claim.STEP_TIME and item.value:
        fields = {"step_time": stated(item, item.value, "s")}
        return replace(candidate, prediction=prediction.model_copy(update=fields))
    if ratio is None:
        return candidate
    return replace(candidate, prediction=_measured(item, prediction, ratio), score=-math.log(ratio), precedent=0.0)


def _ratio(item: StatedFact, now: Quantity | None) -> float | None:
    if item.value is None:
        return None
    if item.claim is Claim.STEP_TIME and now is not None:
        return item.value / now.value
    return item.value if item.claim is Claim.RELATIVE else None


def _measured(item: StatedFact, prediction: Prediction, ratio: float) -> Prediction:
    step = stated(item, item.value or 0.0, "s") if item.claim is Claim.STEP_TIME else None
    fields = {"relative_step_time": stated(item, ratio, "fraction"), "step_time": step or prediction.step_time}
    return prediction.model_copy(update=fields)
