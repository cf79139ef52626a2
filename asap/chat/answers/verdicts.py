"""Short answers on the proposals: one sentence, worth it or not, in the order of a criterion, in a table."""

import re
from collections.abc import Callable, Sequence

from asap.chat.answers.figures import prediction_of
from asap.chat.answers.phrasing import expectation, fit, list_proposals
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.core.units import format_bytes, format_percent, format_seconds
from asap.diagnosis.facts import STEP_TIME_VARIATION
from asap.plans import Plan
from asap.prediction.profile_scaling.plan_distance import doublings
from asap.proposals.reasons.explain import confidence
from asap.proposals.selection.candidate import Candidate
from asap.reports import phrases


def summary(conversation: Conversation, answer: ReplyBuilder) -> None:
    """The analysis in one sentence."""
    study, current = conversation.study, conversation.proposals
    held = study.diagnosis.bottleneck.value.replace("_", " ")
    unknown = study.diagnosis.bottleneck.value == "insufficient_evidence"
    bound = "what bounds the run is not measured yet" if unknown else f"the run is bound by {held}"
    if not current:
        answer.add(f"{study.experiment.id}: {bound}, and no other plan can be ranked.")
        return
    best = current[0]
    answer.focus = best.plan
    answer.add(f"{study.experiment.id}: {bound}; test {best.plan} first: {expectation(best.prediction)}.")
    answer.add_figure("step time over what runs now", best.prediction.relative_step_time)


def worth_it(conversation: Conversation, answer: ReplyBuilder, plans: Sequence[Plan]) -> None:
    """Whether a gain is above what undisturbed steps vary by."""
    current = conversation.proposals
    chosen = conversation.candidate(plans[0]) if plans else None
    candidate = chosen[1] if chosen else (current[0] if current else None)
    if candidate is None:
        list_proposals(conversation, answer)
        return
    answer.focus = candidate.plan
    relative = candidate.prediction.relative_step_time
    answer.add(f"{candidate.plan}: {expectation(candidate.prediction)}.")
    answer.add_figure("step time over what runs now", relative)
    if relative is None:
        answer.add("There is nothing to compare it with.")
        return
    gain, noise = 1 - relative.value, f"{STEP_TIME_VARIATION:.0%} by which undisturbed steps vary"
    chance = confidence(conversation.study, candidate.prediction, ()).faster
    odds = f" (P(faster) {phrases.probability(chance)})" if chance else ""
    if gain <= 0:
        answer.add(f"Not worth it: no gain is expected{odds}. Keep what you have.")
    elif gain < STEP_TIME_VARIATION:
        answer.add(f"Hardly: the gain is below the {noise}{odds}, so keeping what you have is as good an answer.")
    else:
        answer.add(f"The gain is above the {noise}{odds}: a run of a few dozen steps would show it.")


_Criterion = tuple[str, Callable[[Conversation, Candidate], float | None], Callable[[float], str]]


def rank_by(conversation: Conversation, answer: ReplyBuilder, text: str) -> None:
    """The proposals in the order of what was asked for."""
    name, value, write = _criterion(text)
    found = [(value(conversation, c), rank, c) for rank, c in enumerate(conversation.proposals, 1)]
    known = sorted((one for one in found if one[0] is not None), key=lambda one: (one[0], one[1]))
    if not known:
        answer.add(f"The {name} of the proposals cannot be predicted here; this is what is known:")
        list_proposals(conversation, answer)
        return
    best = known[0]
    answer.focus = best[2].plan
    answer.add(f"proposal {best[1]} ({best[2].plan}) has the {name} of the {len(found)}:")
    for amount, rank, candidate in known:
        answer.add(
            f"- proposal {rank}, {candidate.plan}: {write(amount or 0.0)};"
            f" {expectation(candidate.prediction)}{fit(candidate.prediction)}"
        )
    answer.add(f"The ranking itself stays: {', '.join(str(plan) for plan in conversation.order)}.")


def table(conversation: Conversation, answer: ReplyBuilder, plans: Sequence[Plan]) -> None:
    """Plans side by side: step time, communication, memory, chance."""
    study = conversation.study
    now = f" (now: {study.plan})" if study.plan else ""
    answer.add(f"plan | step time | HBM | communication | P(faster){now}")
    for plan in plans:
        whole = plan.completed_by(study.plan)
        prediction = prediction_of(conversation, whole)
        chance = confidence(study, prediction, ()).faster if whole != study.plan else None
        memory = prediction.memory
        held = "unknown" if memory is None else f"{format_bytes(memory.total.value)} ({memory.verdict})"
        sent = format_percent(prediction.communication.value) if prediction.communication else "unknown"
        step = f"{format_seconds(prediction.step_time.value)}, " if prediction.step_time else ""
        rank = conversation.order.index(whole) + 1 if whole in conversation.order else None
        name = f"{rank}. {whole}" if rank else str(whole)
        answer.add(
            f"{name} | {step}{phrases.relative_change(prediction)} | {held} | {sent} | {phrases.probability(chance)}"
        )
        answer.add_figure(f"{whole}: step time", prediction.relative_step_time or prediction.step_time)
    _gap(conversation, answer, plans)


def _gap(conversation: Conversation, answer: ReplyBuilder, plans: Sequence[Plan]) -> None:
    """Whether the first two differ by more than the noise."""
    known = [
        found[1] for plan in plans if (found := conversation.candidate(plan.completed_by(conversation.study.plan)))
    ]
    if len(known) < 2:
        return
    first, second = sorted(known, key=lambda candidate: -candidate.score)[:2]
    gap = first.score - second.score
    weak = gap < STEP_TIME_VARIATION
    noise = f"{'below' if weak else 'above'} the {STEP_TIME_VARIATION:.0%} noise between steps"
    answer.focus = first.plan
    answer.add(f"{first.plan} leads {second.plan} by {format_percent(gap)} of risk-adjusted gain, {noise}.")


def _criterion(text: str) -> _Criterion:
    for words, criterion in _CRITERIA:
        if re.search(words, text, re.I):
            return criterion
    return _CRITERIA[-1][1]


def _hbm(conversation: Conversation, candidate: Candidate) -> float | None:
    memory = candidate.prediction.memory
    return memory.total.value if memory else None


def _communication(conversation: Conversation, candidate: Candidate) -> float | None:
    sent = candidate.prediction.communication
    return sent.value if sent else None


def _step(conversation: Conversation, candidate: Candidate) -> float | None:
    quantity = candidate.prediction.relative_step_time or candidate.prediction.step_time
    return quantity.value if quantity else None


def _width(conversation: Conversation, candidate: Candidate) -> float | None:
    quantity = candidate.prediction.relative_step_time or candidate.prediction.step_time
    if quantity is None or quantity.low is None or quantity.high is None:
        return None
    return quantity.high - quantity.low


def _distance(conversation: Conversation, candidate: Candidate) -> float | None:
    plan = conversation.study.plan
    return float(doublings(candidate.plan, plan)) if plan is not None else None


def _odds(conversation: Conversation, candidate: Candidate) -> float | None:
    chance = confidence(conversation.study, candidate.prediction, ()).faster
    return -chance.value if chance else None


_CRITERIA: tuple[tuple[str, _Criterion], ...] = (
    (r"\b(?:memory|hbm|headroom|footprint|oom|vram)\b", ("lowest HBM use", _hbm, format_bytes)),
    (
        r"\b(?:communicat\w*|collectives?|data between|traffic|network|moves?)\b",
        ("least communication", _communication, format_percent),
    ),
    (r"\b(?:interval|narrow\w*|uncertain\w*)\b", ("narrowest interval", _width, lambda value: f"width {value:.2f}")),
    (
        r"\b(?:chance|probab\w*|likely|odds|p\(faster\))\b",
        ("highest probability of being faster", _odds, lambda value: f"{-value:.0%}"),
    ),
    (
        r"\b(?:risk\w*|safe\w*|close\w*|easi\w*|change|distance|smallest)\b",
        ("smallest distance from what runs", _distance, lambda value: f"{value:g} doubling(s)"),
    ),
    (r"", ("shortest step", _step, lambda value: f"{value:.3f} of the step (s, where nothing runs now)")),
)  # fmt: skip
