"""A prediction of a plan as a row of an answer."""

import math
import re
from collections.abc import Sequence

from pydantic import Field, JsonValue

from asap.answers.figure import CHANGE, DETAIL, Figure, Part, bare, change, figure, subject_of
from asap.answers.inquiry import Inquiry
from asap.core.units import Provenance, Quantity
from asap.evidence.anchor import apply_measured_step
from asap.evidence.effect import relative_to
from asap.plans import Plan
from asap.prediction.prediction import Prediction
from asap.proposals.reasons.explain import confidence
from asap.proposals.selection.candidate import SHOWN_PRECEDENT
from asap.proposals.selection.strategy import title

_FIGURE = re.compile(r"[\d.,]+ (?:%|[nµm]?s\b|[KMGT]i?B)")
_DETAIL: dict[str, JsonValue] = {"role": DETAIL}


class PlanRow(Part):
    """One plan: what is expected of it."""

    name: str = Field(description="now, its rank among the proposals, or empty")
    plan: str
    step_time: Figure | None = None
    vs_now: Figure | None = Field(default=None, description="change of the step time for as many tokens")
    tokens_per_second: Figure | None = Field(default=None, json_schema_extra=_DETAIL)
    mfu: Figure | None = None
    hbm: Figure | None = Field(default=None, description="of the fullest device")
    fit: str | None = Field(default=None, json_schema_extra=_DETAIL)
    fits_odds: Figure | None = Field(default=None, description="probability that it fits")
    faster_odds: Figure | None = Field(
        default=None, description="probability that it is faster than what runs", json_schema_extra=_DETAIL
    )
    published: Figure | None = Field(
        default=None, description="what such a change did to the step in published runs", json_schema_extra=_DETAIL
    )
    communication: Figure | None = Field(
        default=None, description="share of the step in exposed collectives", json_schema_extra=_DETAIL
    )
    strategy: str | None = Field(
        default=None, description="what most of its gain comes from", json_schema_extra=_DETAIL
    )


class PlanPart(Part):
    """A part of the step, or of HBM."""

    part: str
    axis: str | None = None
    adds: Figure | None = Field(default=None, description="what it adds to the step")
    runs: Figure | None = Field(default=None, description="how long it runs, hidden or not")
    hbm: Figure | None = None


def plan_name(inquiry: Inquiry, plan: Plan) -> str:
    """``now``, the rank of a proposal, or nothing."""
    if plan == inquiry.study.plan:
        return "now"
    order = inquiry.order
    return str(order.index(plan) + 1) if plan in order else ""


def plan_row(inquiry: Inquiry, prediction: Prediction, name: str | None = None, subject: str | None = None) -> PlanRow:
    """The row of a prediction.

    Args:
        inquiry: the run.
        prediction: of the plan.
        name: what it is called; by default its rank among the proposals.
        subject: what its figures are of, where that is not the plan in the run as it is.
    """
    plan, now, memory = prediction.plan, inquiry.study.plan, prediction.memory
    of = subject or subject_of(plan, now)
    is_now = plan == now and subject is None
    step = (apply_measured_step(inquiry.study, prediction, inquiry.facts) if is_now else prediction).step_time
    faster = None if is_now else confidence(inquiry.study, prediction, ()).faster
    surely = faster.model_copy(update={"unit": "odds"}) if faster else None
    odds = memory.probability_fits if memory is not None else None
    source = memory.total.source if memory is not None else ""
    return PlanRow(
        name=plan_name(inquiry, plan) if name is None else name,
        plan=plan.beside(now),
        step_time=figure(of, "step_time", step),
        vs_now=None if is_now else change(of, prediction.relative_step_time),
        tokens_per_second=figure(of, "tokens_per_second", prediction.tokens_per_second),
        mfu=figure(of, "mfu", prediction.mfu),
        hbm=figure(of, "hbm", memory.total) if memory else None,
        fit=memory.verdict if memory else None,
        fits_odds=bare(of, "fits_odds", odds, "odds", source, memory.total.provenance) if memory else None,
        faster_odds=figure(of, "faster_odds", surely),
        published=_published(inquiry, plan, of),
        communication=figure(of, "communication", prediction.communication),
        strategy=_strategy(inquiry, plan),
    )


def _published(inquiry: Inquiry, plan: Plan, of: str) -> Figure | None:
    found = inquiry.candidate(plan)
    said = math.expm1(-found[1].precedent) if found and abs(found[1].precedent) >= SHOWN_PRECEDENT else None
    return bare(of, "published", said, CHANGE, "similar runs of the history", Provenance.PRECEDENT)


def _strategy(inquiry: Inquiry, plan: Plan) -> str | None:
    study, found = inquiry.study, inquiry.candidate(plan)
    if found is None or study.plan is None:
        return None
    return title(plan, study.plan, found[1].strategy, study.experiment.workload.experts_over)


def step_over(inquiry: Inquiry, before: Prediction, after: Prediction) -> Quantity | None:
    """The step of one run over that of another, with the interval of such a change; by ratios of a profile, with what
    both are uncertain by."""
    found = relative_to(before, after, inquiry.study.experiment.model)
    if found is None or "profile_ratios" not in (before.method, after.method):
        return found
    known = [one.relative_step_time for one in (before, after)]
    spread = math.exp(math.hypot(*(math.log(one.high / one.value) for one in known if one and one.high)))
    return found.model_copy(update={"low": found.value / spread, "high": found.value * spread})


def notes_of(predictions: Sequence[Prediction], most: int = 4) -> tuple[str, ...]:
    """What predictions rest on, each once; of notes that differ in a figure alone the first."""
    found: dict[str, str] = {}
    for note in (note for one in predictions for note in one.notes):
        found.setdefault(_FIGURE.sub("", note), note)
    return tuple(found.values())[:most]


def billion_tokens(inquiry: Inquiry, prediction: Prediction, *, of_chips: bool = False) -> Figure | None:
    """How long a billion tokens take; in hours of one chip if ``of_chips``."""
    rate, slice_ = prediction.tokens_per_second, inquiry.study.slice
    if rate is None or slice_ is None:
        return None
    of, hours = subject_of(prediction.plan, inquiry.study.plan), 1e9 / rate.value / 3600
    name, unit = ("chip_hours_per_billion_tokens", "chip-hours") if of_chips else ("time_of_a_billion_tokens", "hours")
    return bare(of, name, hours * (slice_.chips if of_chips else 1), unit, rate.source, rate.provenance)


def time_parts(inquiry: Inquiry, prediction: Prediction) -> tuple[PlanPart, ...]:
    """Where the predicted step goes, the largest first."""
    of, source, kind = subject_of(prediction.plan, inquiry.study.plan), prediction.method, prediction.step_time
    if kind is None:
        return ()
    rows = []
    shown = [part for part in prediction.parts if part.busy_s or part.exposed_s]
    for part in sorted(shown, key=lambda part: -part.exposed_s):
        name = f"{part.name}.{part.axis}" if part.axis else part.name
        adds = bare(of, f"time.{name}", part.exposed_s, "s", source, kind.provenance)
        runs = bare(of, f"busy.{name}", part.busy_s, "s", source, kind.provenance)
        rows.append(PlanPart(part=part.name, axis=part.axis, adds=adds, runs=runs))
    return tuple(rows)


def memory_parts(inquiry: Inquiry, prediction: Prediction) -> tuple[PlanPart, ...]:
    """What takes HBM, the largest first."""
    memory, of = prediction.memory, subject_of(prediction.plan, inquiry.study.plan)
    if memory is None:
        return ()
    return tuple(
        PlanPart(
            part=part.name,
            hbm=bare(of, f"hbm.{part.name}", part.size_bytes, "bytes", "the step model", Provenance.MODELLED),
        )
        for part in sorted(memory.parts, key=lambda part: -part.size_bytes)
    )
