"""The sentences in which a reply puts figures of the engine."""

from collections.abc import Sequence

from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.core.errors import AsapError, InsufficientEvidenceError
from asap.core.provenance import Provenance
from asap.core.units import counted, format_percent, format_seconds, significant
from asap.plans import Plan
from asap.prediction.prediction import Prediction
from asap.prediction.profile_scaling.plan_distance import doublings, spread
from asap.proposals import Proposal
from asap.proposals.propose import draft
from asap.proposals.reasons.cite import cite
from asap.proposals.reasons.explain import confidence
from asap.proposals.selection.candidate import Candidate, fits
from asap.reports import phrases


def lead(gap: float) -> str:
    """By how much one score is above another; a share above the whole says no more than "by far"."""
    return "by far" if gap >= 1 else f"by {format_percent(gap)} of risk-adjusted gain"


def drafted(conversation: Conversation, candidate: Candidate, rank: int) -> Proposal:
    """A candidate with reasons and citations; without citations if notes and history cannot be searched."""
    study = conversation.study
    try:
        citations = cite(study, candidate.plan)
    except AsapError:
        citations = ()
    return draft(study, candidate, rank, citations)


def expectation(prediction: Prediction) -> str:
    """``step time -3.1 % (-45 to +70 %), modelled``."""
    quantity = prediction.relative_step_time or prediction.step_time
    if quantity is None:
        return "step time unknown"
    if quantity.provenance is Provenance.STATED:
        change = f"{(quantity.value - 1) * 100:+.1f} %" if quantity.unit == "fraction" else phrases.interval(quantity)
        return f"step time {change}, {quantity.source}"
    step = prediction.step_time
    measured = f", measured {format_seconds(step.value)}" if step and step.provenance is Provenance.STATED else ""
    return f"step time {phrases.relative_change(prediction)}, {quantity.provenance.value}{measured}"


def line(conversation: Conversation, candidate: Candidate, rank: int | None = None) -> str:
    """One candidate on one line."""
    study = conversation.study
    chance = confidence(study, candidate.prediction, ()).faster
    text = f"{f'{rank}. ' if rank else ''}{candidate.plan}: {expectation(candidate.prediction)}"
    text += f", P(faster) {phrases.probability(chance)}" if chance else ""
    return text + fit(candidate.prediction)


def figures_of(prediction: Prediction) -> str:
    """``step time 10.3 s (8.1 s to 13 s), 102000 tokens/s, MFU 41.0 %, HBM 13 GiB of 16 GiB (fits), modelled``."""
    parts = []
    if prediction.step_time is not None:
        parts.append(f"step time {phrases.interval(prediction.step_time)}")
    if prediction.tokens_per_second is not None:
        parts.append(f"{significant(prediction.tokens_per_second.value, 4)} tokens/s")
    if prediction.mfu is not None:
        parts.append(f"MFU {format_percent(prediction.mfu.value)}")
    held = fit(prediction).removeprefix(", ")
    kind = prediction.step_time.provenance.value if prediction.step_time else ""
    return ", ".join(filter(None, [*parts, held, kind])) or "nothing can be predicted"


def fit(prediction: Prediction) -> str:
    """``, HBM 12.3 GiB of 16 GiB (fits)``; nothing where memory is not predicted."""
    if prediction.memory is None:
        return ""
    return f", HBM {phrases.memory_phrase(prediction)} ({prediction.memory.verdict})"


def list_proposals(conversation: Conversation, answer: ReplyBuilder) -> None:
    """The current proposals; raises InsufficientEvidenceError where there are none to predict."""
    current = conversation.proposals
    if not current:
        answer.add(_why_none(conversation.revised.ranked.candidates))
    for rank, candidate in enumerate(current, 1):
        answer.add(line(conversation, candidate, rank))
        quantity = candidate.prediction.relative_step_time or candidate.prediction.step_time
        answer.add_figure(f"{candidate.plan}: step time", quantity)


def _why_none(candidates: Sequence[Candidate]) -> str:
    if not candidates:
        return "No other valid plan is known."
    if any(fits(candidate.prediction) for candidate in candidates):
        return f"None of the {len(candidates)} other plans is expected to gain enough for its risk."
    return f"None of the {len(candidates)} other valid plans is predicted to fit."


def basis(conversation: Conversation, candidate: Candidate, answer: ReplyBuilder) -> None:
    """The basis of the prediction of one plan: interval, distance, backtest, precedent, stated facts."""
    study, prediction = conversation.study, candidate.prediction
    relative = prediction.relative_step_time
    chance = confidence(study, prediction, ()).faster
    answer.add_figure("probability of being faster", chance)
    answer.add_figure("step time over what runs now", relative)
    if relative is not None and relative.provenance is Provenance.STATED:
        answer.add(f"- measured, not predicted: {relative.source}")
        return
    if relative is not None:
        answer.add(f"- interval: {phrases.relative_change(prediction)} in 90 % of cases; {relative.source} (modelled)")
    if study.plan is not None:
        answer.add(f"- distance: {_distance(candidate.plan, study.plan, prediction)}")
    answer.add(f"- backtest: {_backtest(prediction)}")
    answer.add(*(f"- precedent: {title}" for title in _precedents(conversation, candidate.plan)))
    answer.add(*(f"- {note}" for note in prediction.notes))


def insufficient_evidence(conversation: Conversation, error: InsufficientEvidenceError, answer: ReplyBuilder) -> None:
    """Say what the engine cannot answer, and what would help."""
    answer.add(
        f"The engine cannot answer that: {error.message}." + (f" What would help: {error.hint}." if error.hint else "")
    )


def seconds(value: float) -> str:
    """A step time."""
    return format_seconds(value)


def _distance(plan: Plan, incumbent: Plan, prediction: Prediction) -> str:
    moved = doublings(plan, incumbent)
    text = f"{counted(moved, 'doubling')} away from what runs"
    if prediction.method == "profile_ratios":
        factor = significant(_factor(spread(moved)))
        return f"{text}; published runs this far apart differ by up to {factor} times in 90 % of pairs"
    region = f"{prediction.region_distance:.2f} outside" if prediction.region_distance else "inside"
    relative = prediction.relative_step_time
    of_published_pairs = prediction.method in ("architecture", "anchored_architecture") and plan != incumbent
    if of_published_pairs and relative is not None and relative.high is not None:
        factor = significant(relative.high / relative.value)
        text += f"; nine in ten published runs whose steps differ as much lie within {factor} times of their prediction"
    return f"{text}; the run lies {region} the calibrated region"


def _factor(width: float) -> float:
    from math import exp

    return exp(width)


def backtest_score() -> str:
    """How far off the model was on published runs that it was not fitted to."""
    from asap.prediction import load_calibration

    known = load_calibration()
    runs = sum(known.rows.values())
    return (
        f"{runs} published runs of {len(known.rows)} sources, each predicted without its own source: median error"
        f" {format_percent(known.error['median_ape'])}, 90 % of them within {format_percent(known.error['p90_ape'])}"
    )


def _backtest(prediction: Prediction) -> str:
    if prediction.method == "profile_ratios":
        return f"the calibrated model does not apply without the architecture; where it does: {backtest_score()}"
    return backtest_score()


def _precedents(conversation: Conversation, plan: Plan) -> list[str]:
    try:
        found = [citation for citation in cite(conversation.study, plan) if citation.kind == "precedent"]
    except AsapError as error:
        return [f"the history cannot be searched: {error}"]
    return [f"{citation.title} [{citation.id}]" for citation in found] or ["none is similar enough"]
