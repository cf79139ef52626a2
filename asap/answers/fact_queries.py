"""Queries that put facts on record, take them back and list them; every prediction and the order follow."""

from contextlib import suppress
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from asap.answers.figure import CHANGE, Answer, Figure, Part, PlanName, Query, bare, figure, subject_of
from asap.answers.inquiry import Inquiry
from asap.answers.plan_row import PlanRow, plan_row
from asap.core.errors import BadInputError, InsufficientEvidenceError, PlanError
from asap.core.numbers import LARGEST_COUNT, as_setting
from asap.core.units import GIB, Provenance, exact
from asap.evidence.effect import RAN
from asap.evidence.fact import Claim, StatedFact
from asap.hardware import read_network
from asap.plans import AXES, Plan
from asap.plans.plan import SETTINGS
from asap.prediction.prediction import Prediction

What = Literal[
    "step_time", "relative", "mfu", "throughput", "hbm_share", "hbm_bytes", "out_of_memory", "fits", "failed",
    "slower", "faster", "batch", "sequence", "network", "incumbent", "constraint",
]  # fmt: skip
Unit = Literal["s", "ms", "min", "%", "x", "% slower", "% faster", "GiB", "GB", "tokens/s", "count"]
_SCALES: dict[Claim, dict[str, float]] = {
    Claim.STEP_TIME: {"s": 1.0, "ms": 1e-3, "min": 60.0},
    Claim.MFU: {"%": 1e-2},
    Claim.HBM_SHARE: {"%": 1e-2},
    Claim.HBM_BYTES: {"GiB": float(GIB), "GB": 1e9},
    Claim.THROUGHPUT: {"tokens/s": 1.0},
    Claim.BATCH: {"count": 1.0},
    Claim.SEQUENCE: {"count": 1.0},
    Claim.CONSTRAINT: {"count": 1.0},
    Claim.RELATIVE: {"x": 1.0, "%": 1e-2},
}
_OF_A_PLAN = {
    Claim.RELATIVE,
    Claim.OUT_OF_MEMORY,
    Claim.FITS,
    Claim.FAILED,
    Claim.SLOWER,
    Claim.FASTER,
    Claim.INCUMBENT,
}
_NUMBERS = set(_SCALES) - {Claim.CONSTRAINT}
_DECIDES = (Claim.STEP_TIME, Claim.OUT_OF_MEMORY)
"""Claims that are judged by what was predicted."""
LONGEST_WORDS = 400


class FactRow(Part):
    """A fact on record."""

    number: int
    fact: str
    said_by: str
    words: str


class FactsAnswer(Answer):
    """All facts on record."""

    facts: tuple[FactRow, ...]


class Facts(Query):
    """List the facts on record beside the run's own: what was stated, measured or compiled since, by number."""

    def answer(self, inquiry: Inquiry) -> FactsAnswer:
        """The oldest first."""
        return FactsAnswer(facts=tuple(_row(inquiry, fact) for fact in inquiry.facts))


class RecordAnswer(Answer):
    """What was put on record or taken back, and what it changes."""

    recorded: tuple[FactRow, ...] = ()
    already: tuple[FactRow, ...] = ()
    replaced: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    against_prediction: Figure | None = Field(default=None, description="what was measured against the prediction")
    predicted: Figure | None = Field(default=None, description="the step, or the HBM of what ran out of it")
    fits_odds: Figure | None = Field(default=None, description="that it would fit, before it ran out of memory")
    contradicts: tuple[str, ...] = Field(
        default=(), description="what is on record of the same plan and speaks against it"
    )
    verdict: str | None = Field(
        default=None, description="of the measured step of what runs, or that it ran out of memory"
    )
    order_changed: bool
    before: tuple[str, ...] = Field(description="proposals, best first")
    order: tuple[PlanRow, ...] = Field(description="proposals after it, best first")
    advice: str | None = Field(default=None, description="where nothing is proposed any more")
    ruled_out: tuple[str, ...] = ()


class Record(Query):
    """Put on record what happened or is so: a measured step time, MFU, throughput or HBM of a plan, that a plan ran
    out of memory, failed or was slower, another batch, sequence, network between nodes or plan that runs, or a
    constraint. Only what was reported: no wish, opinion, question or supposition."""

    records: ClassVar[bool] = True

    what: What
    plan: PlanName | None = Field(
        default=None, description="which plan; by default what runs now where that can be meant"
    )
    value: Annotated[float, Field(gt=0, le=LARGEST_COUNT)] | None = Field(default=None, description="as it was said")
    unit: Unit | None = Field(default=None, description="of the value as it was said")
    about: Annotated[str, Field(max_length=40)] | None = Field(
        default=None,
        description="what a constraint holds: an axis, a setting, mesh, batch, sequence, hardware; of a network its"
        " rate: 8x400Gb (ports of a node), 3200Gb/node, 400Gb/gpu",
    )
    bound: Literal["least", "most"] | None = Field(default=None, description="of a constraint on a degree")
    words: Annotated[str, Field(max_length=LONGEST_WORDS)] = Field(default="", description="the words that state it")

    def answer(self, inquiry: Inquiry) -> RecordAnswer:
        """Recorded, unless it is on record already."""
        return record(inquiry, self.fact(inquiry))

    def fact(self, inquiry: Inquiry) -> StatedFact:
        """The fact, in the units of the record; it is not recorded yet.

        Raises:
            BadInputError: something is missing, or the unit does not measure it.
            PlanError: the plan is malformed or cannot run here.
        """
        claim = Claim[self.what.upper()]
        plan = self._plan(inquiry, claim)
        if self.value is None and claim in _NUMBERS:
            units = ", ".join((*_SCALES[claim], *(("% slower", "% faster") if claim is Claim.RELATIVE else ())))
            raise BadInputError("needs a value and its unit", where=self.what, hint=f"units: {units}")
        if claim is Claim.CONSTRAINT and self.about is None:
            raise BadInputError("needs what it is about", where=self.what, hint="an axis, batch, sequence, hardware")
        value = None if self.value is None else _in_units_of_record(claim, self.value, self.unit)
        if claim is Claim.NETWORK:
            value = _network(inquiry, self.about)
        said = {"stated": self.value, "unit": self.unit} if value != self.value else {}
        keeps = None
        if claim is Claim.CONSTRAINT and self.value is None and inquiry.study.plan and self.about in (*AXES, *SETTINGS):
            keeps = inquiry.study.plan
        return StatedFact(
            claim=claim, plan=plan, value=value, about=self.about if claim is Claim.CONSTRAINT else None,
            bound=self.bound, keeps=keeps, words=self.words or self._as_words(),
            origin=inquiry.origin, **said,
        )  # fmt: skip

    def _plan(self, inquiry: Inquiry, claim: Claim) -> Plan | None:
        if claim in (Claim.CONSTRAINT, Claim.BATCH, Claim.SEQUENCE, Claim.NETWORK):
            return None
        if self.plan is not None:
            return inquiry.plan(self.plan)
        if claim in _OF_A_PLAN:
            raise BadInputError("needs the plan", where=self.what, hint="a rank, now, or data=32 model=4")
        return inquiry.now

    def _as_words(self) -> str:
        value = as_setting(self.value) if self.value else None
        parts = (self.what, self.plan, self.about, self.bound, value, self.unit)
        return " ".join(part for part in parts if part)


class Retract(Query):
    """Take a fact off the record, by its number."""

    records: ClassVar[bool] = True

    number: Annotated[int, Field(ge=1, description="as `facts` has it")]

    def answer(self, inquiry: Inquiry) -> RecordAnswer:
        """Every prediction and the order are as without it."""
        gone, before = inquiry.fact(self.number), inquiry.order
        inquiry.retract([gone])
        return _effect(inquiry, before, removed=(str(gone),))


def record(inquiry: Inquiry, fact: StatedFact) -> RecordAnswer:
    """Put a fact on record; raises AsapError where the run cannot be read with it, and then nothing has changed."""
    if fact in inquiry.facts:
        return _effect(inquiry, inquiry.order, already=(_row(inquiry, fact),))
    before, found, now = inquiry.order, _predicted(inquiry, fact), inquiry.study.plan
    row = plan_row(inquiry, found) if found and fact.claim is Claim.OUT_OF_MEMORY else None
    step = figure(subject_of(found.plan, now), "predicted_step_time", found.step_time) if found and not row else None
    replaced = tuple(str(old) for old in inquiry.facts if fact.supersedes(old))
    inquiry.record([fact])
    against, kind = None, Provenance.STATED
    if step is not None and fact.value:
        against = bare(
            subject_of(fact.plan or Plan(), inquiry.study.plan), "measured_vs_predicted",
            fact.value / step.value - 1, CHANGE, "measured over predicted", kind,
        )  # fmt: skip
    judged = inquiry.judgement if fact.plan == inquiry.study.plan else None
    return _effect(
        inquiry, before, recorded=(_row(inquiry, fact),), replaced=replaced, against_prediction=against,
        predicted=row.hbm if row else step, fits_odds=row.fits_odds if row else None,
        contradicts=_contradicted(inquiry, fact),
        verdict=judged.statement if judged and fact.claim in _DECIDES else None,
    )  # fmt: skip


def _effect(inquiry: Inquiry, before: tuple[Plan, ...], **found: object) -> RecordAnswer:
    after = inquiry.order
    return RecordAnswer.model_validate(
        {
            **found,
            "order_changed": before != after,
            "before": tuple(map(str, before)),
            "order": tuple(plan_row(inquiry, one.prediction) for one in inquiry.proposals),
            "advice": inquiry.advice if before and not after else None,
            "ruled_out": tuple(str(plan) for plan in before if plan in inquiry.revised.excluded),
        }
    )


def _predicted(inquiry: Inquiry, fact: StatedFact) -> Prediction | None:
    """What was predicted of the plan before; ``None`` where nothing can be: a measurement needs no prediction."""
    if fact.plan is None or fact.claim not in _DECIDES:
        return None
    with suppress(PlanError, InsufficientEvidenceError):
        return inquiry.predictions([fact.plan])[0]
    return None


def _contradicted(inquiry: Inquiry, fact: StatedFact) -> tuple[str, ...]:
    """What says of the same plan that it ran where it ran out of memory, or the other way round."""
    died = Claim.OUT_OF_MEMORY
    pairs = {(died, ran) for ran in RAN} | {(ran, died) for ran in RAN}
    known, measured = list(inquiry.facts), inquiry.analysed.experiment.measured
    if measured is not None:
        now = inquiry.analysed.plan
        known.append(StatedFact(claim=Claim.STEP_TIME, plan=now, value=measured.seconds, words=measured.source))
    return tuple(str(one) for one in known if one.plan == fact.plan and (one.claim, fact.claim) in pairs)


def _row(inquiry: Inquiry, fact: StatedFact) -> FactRow:
    return FactRow(number=inquiry.number(fact), fact=str(fact), said_by=fact.said_by, words=fact.words)


def _network(inquiry: Inquiry, said: str | None) -> float:
    """Bytes/s of one device; raises BadInputError where the chips are not known, ConfigError where it is no rate."""
    hardware = inquiry.study.slice
    if hardware is None or said is None:
        reason = "needs a rate" if hardware else "needs the chips of the run"
        raise BadInputError(reason, where="network", hint="runs network=8x400Gb")
    return read_network(said, hardware.chip)


def _in_units_of_record(claim: Claim, value: float, unit: str | None) -> float:
    """Seconds, bytes, tokens a second, a count, or a fraction."""
    if claim is Claim.RELATIVE and unit in ("% slower", "% faster"):
        sign = 1 if unit == "% slower" else -1
        if sign * value <= -100:
            raise BadInputError("a step cannot be 100 % shorter", where=f"{exact(value)} {unit}")
        return 1 + sign * value / 100
    known = _SCALES.get(claim, {})
    if unit is None and "count" in known:
        unit = "count"
    if unit is None or unit not in known:
        takes = ", ".join(known) or "no number"
        raise BadInputError(f"{unit or 'no unit'} does not measure that", where=claim.value, hint=f"it takes {takes}")
    return value * known[unit]
