"""The ledger: all predictions of the worklog that had an outcome or wait for one, and how good they were."""

import math
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from statistics import median
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from asap.evidence.fact import Claim, StatedFact, recorded_facts
from asap.experiments import Experiment
from asap.optimize.ideas import TriedIdea, tried_ideas
from asap.optimize.session import OPENED, Session
from asap.plans import Plan
from asap.prediction.prediction import Prediction
from asap.sharding_memory import Kind
from asap.sharding_memory.analyses import StoredAnalysis
from asap.sharding_memory.sessions import readable_sessions


class Outcome(BaseModel):
    """What came of a plan: a step time, or whether it fits."""

    model_config = ConfigDict(frozen=True)

    step_time_s: float | None = None
    ratio: float | None = Field(default=None, description="step time over that of the plan that ran before")
    fits: bool | None = None
    words: str = Field(description="as it was stated, or where it was measured")


class Entry(BaseModel):
    """One prediction: seconds with a 90 % interval, or a ratio where no step time was predicted."""

    model_config = ConfigDict(frozen=True)

    session: str
    time: datetime
    experiment: str
    plan: Plan
    method: str
    unit: Literal["s", "fraction"]
    predicted: float
    low: float
    high: float
    fits: bool | None = Field(description="whether it was predicted to fit into HBM")
    outcome: Outcome | None = None

    @property
    def measured(self) -> float | None:
        """The outcome in the unit of the prediction."""
        if self.outcome is None:
            return None
        return self.outcome.step_time_s if self.unit == "s" else self.outcome.ratio

    @property
    def inside(self) -> bool | None:
        """Whether the measurement lies in the interval."""
        return None if self.measured is None else self.low <= self.measured <= self.high

    @property
    def error(self) -> float | None:
        """``ln(measured / predicted)``."""
        return None if not self.measured else math.log(self.measured / self.predicted)

    @property
    def right_about_memory(self) -> bool | None:
        """Whether the verdict on memory was right, where both are known."""
        if self.outcome is None or self.outcome.fits is None or self.fits is None:
            return None
        return self.fits == self.outcome.fits


_FITS = {Claim.FITS: True, Claim.OUT_OF_MEMORY: False, Claim.FASTER: True, Claim.SLOWER: True}
"""What a claim says of memory: what ran fits."""


class Score(BaseModel):
    """How good the predictions were that have an outcome."""

    model_config = ConfigDict(frozen=True)

    measured: int = Field(description="predictions of a time that were measured")
    inside: int = Field(description="of those, measurements in the 90 % interval")
    median_error: float | None = Field(description="median of |measured / predicted - 1|")
    memory_verdicts: int
    memory_right: int


class SessionIdea(TriedIdea, frozen=True):
    """An untested idea that an optimization tried."""

    session: str
    experiment: str


class Ledger(BaseModel):
    """Predictions in the order of time, and their score."""

    model_config = ConfigDict(frozen=True, populate_by_name=True)

    schema_: Literal["asap.ledger/1"] = Field(default="asap.ledger/1", alias="schema")
    entries: tuple[Entry, ...]
    score: Score
    ideas: tuple[SessionIdea, ...] = Field(default=(), description="untested ideas that optimizations tried")


def build_ledger(
    analyses: Sequence[StoredAnalysis], experiments: Sequence[Experiment], ideas: Iterable[SessionIdea] = ()
) -> Ledger:
    """Match the predictions of sessions with what was stated in them, measured, or is on record.

    Of several predictions of a plan the first counts that has an outcome.

    Args:
        analyses: of all sessions, the oldest first.
        experiments: of the store, whose measured steps are outcomes too.
        ideas: that optimizations tried.
    """
    found: dict[tuple[str, Plan], Entry] = {}
    for analysis in analyses:
        for entry in _entries(analysis, analyses, experiments):
            first = found.setdefault((entry.experiment, entry.plan), entry)
            if first.outcome is None and entry.outcome is not None:
                found[entry.experiment, entry.plan] = entry
    entries = sorted(found.values(), key=lambda entry: entry.time)
    return Ledger(entries=tuple(entries), score=score(entries), ideas=tuple(ideas))


def session_ideas(experiment: str | None = None) -> Iterator[SessionIdea]:
    """What became of the ideas of all optimizations that can be read, or of those of one experiment."""
    for name, records in readable_sessions():
        if any(record.fields.get("event") == OPENED for record in records[:1]):
            session = Session.resume(name)
            of = session.settings.get("experiment", {}).get("id")
            if of and experiment in (None, of):
                tried = tried_ideas(session.tries)
                yield from (SessionIdea(**one.model_dump(), session=name, experiment=of) for one in tried)


def score(entries: Sequence[Entry]) -> Score:
    """The score of predictions, those without an outcome aside."""
    errors = [abs(entry.measured / entry.predicted - 1) for entry in entries if entry.measured]
    verdicts = [entry.right_about_memory for entry in entries if entry.right_about_memory is not None]
    return Score(
        measured=len(errors),
        inside=sum(bool(entry.inside) for entry in entries),
        median_error=median(errors) if errors else None,
        memory_verdicts=len(verdicts),
        memory_right=sum(verdicts),
    )


def _entries(
    stored: StoredAnalysis, analyses: Sequence[StoredAnalysis], experiments: Sequence[Experiment]
) -> Iterator[Entry]:
    now = stored.analysis.kpis.step_time_s if stored.analysis.kpis else None
    for prediction in _predictions(stored):
        quantity = prediction.step_time or prediction.relative_step_time
        if quantity is None or quantity.low is None or quantity.high is None:
            continue
        outcome = _stated(stored, prediction.plan, now) or _measured(
            stored, prediction.plan, now, analyses, experiments
        )
        yield Entry(
            session=stored.session,
            time=stored.time,
            experiment=stored.experiment.id,
            plan=prediction.plan,
            method=prediction.method,
            unit="s" if prediction.step_time else "fraction",
            predicted=quantity.value,
            low=quantity.low,
            high=quantity.high,
            fits=prediction.memory.fits if prediction.memory else None,
            outcome=outcome,
        )


def _predictions(stored: StoredAnalysis) -> Iterator[Prediction]:
    """Of the proposals; of the plan that runs only where no measured step entered its prediction."""
    incumbent = stored.analysis.incumbent
    if incumbent is not None and incumbent.method == "architecture":
        yield incumbent
    for proposal in stored.analysis.proposals:
        yield proposal.prediction


def _stated(stored: StoredAnalysis, plan: Plan, now: float | None) -> Outcome | None:
    """The last fact about a plan that was stated or compiled in the session, and not taken back."""
    notes = (record.fields for record in stored.records if record.kind is Kind.NOTE)
    facts = [fact for fact in recorded_facts(notes) if fact.plan == plan]
    found = None
    for fact in facts:
        seconds = fact.value if fact.claim is Claim.STEP_TIME else None
        ratio = fact.value if fact.claim is Claim.RELATIVE else seconds / now if seconds and now else None
        seconds = seconds or (ratio * now if ratio and now else None)
        fits = True if ratio or seconds else _FITS.get(fact.claim)
        if seconds or ratio or fits is not None:
            found = Outcome(step_time_s=seconds, ratio=ratio, fits=fits, words=_words(fact))
    return found


def _words(fact: StatedFact) -> str:
    return f"{str(fact).removeprefix(str(fact.plan)).strip()}, {fact.said_by}"


def _measured(
    stored: StoredAnalysis,
    plan: Plan,
    now: float | None,
    analyses: Sequence[StoredAnalysis],
    experiments: Sequence[Experiment],
) -> Outcome | None:
    """The step time of another experiment that ran this plan, and nothing else changed."""
    times = {e.id: (e, e.measured.seconds) for e in experiments if e.measured}
    for other in analyses:
        if other.analysis.kpis is not None and other.analysis.kpis.step_time_s:
            times[other.experiment.id] = (other.experiment, other.analysis.kpis.step_time_s)
    for name, (experiment, seconds) in times.items():
        if experiment.plan == plan and _is_same_run(experiment, stored.experiment):
            ratio = seconds / now if now else None
            return Outcome(step_time_s=seconds, ratio=ratio, fits=True, words=f"measured: {name}")
    return None


def _is_same_run(one: Experiment, other: Experiment) -> bool:
    """The same model, batch and hardware, all of them known."""
    sides = [(e.model, e.workload.global_batch, e.workload.sequence_length, e.hardware) for e in (one, other)]
    return sides[0] == sides[1] and None not in sides[0]
