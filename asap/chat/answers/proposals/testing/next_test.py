"""What to test next once something was measured: what came of it, and what is still expected to beat it."""

from collections.abc import Sequence

from asap.chat.answers.phrasing import line
from asap.chat.answers.proposals.measurements import against_prediction
from asap.chat.answers.proposals.order import ranking
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.core.units import format_percent, format_seconds
from asap.diagnosis.facts import STEP_TIME_VARIATION
from asap.evidence.claims import EXCLUDING_CLAIMS, Claim
from asap.evidence.fact import StatedFact
from asap.proposals.selection.candidate import Candidate


def what_to_test(conversation: Conversation, answer: ReplyBuilder) -> None:
    """Which proposal to test first; once one was tested, what came of it and which to test next."""
    if found := outcomes(conversation):
        _next(conversation, answer, found)
    else:
        ranking.first(conversation, answer)


def what_comes_after(conversation: Conversation, answer: ReplyBuilder) -> None:
    """What to test after the plan to test now: the proposals behind it, while nothing was measured."""
    current = conversation.proposals
    if len(current) < 2 or outcomes(conversation):
        what_to_test(conversation, answer)
        return
    answer.add(f"Report what {current[0].plan} measures; the order may change with it. As it stands, next:")
    for rank, candidate in enumerate(current[1:], 2):
        answer.add(line(conversation, candidate, rank))
    answer.focus = current[1].plan


def _next(conversation: Conversation, answer: ReplyBuilder, found: Sequence[StatedFact]) -> None:
    """What the tests gained against what was predicted, and which proposal is worth testing after them."""
    measured = [fact for fact in found if fact.claim not in EXCLUDING_CLAIMS]
    for fact in measured:
        answer.add(*(against_prediction(conversation, fact) or [f"{fact}, as predicted."]))
    answer.add(*(f"{fact}: out of the running." for fact in found if fact.claim in EXCLUDING_CLAIMS))
    tested = [fact.plan for fact in found]
    left = [(rank, one) for rank, one in enumerate(conversation.proposals, 1) if one.plan not in tested]
    _recommend(conversation, answer, _best(conversation, measured), left)


def outcomes(conversation: Conversation) -> list[StatedFact]:
    """What was stated of plans other than the one that runs."""
    claims = {Claim.STEP_TIME, Claim.RELATIVE, *EXCLUDING_CLAIMS}
    now = conversation.study.plan
    return [
        fact for fact in conversation.evidence if fact.claim in claims and fact.plan is not None and fact.plan != now
    ]


def _recommend(
    conversation: Conversation, answer: ReplyBuilder, best: Candidate | None, left: Sequence[tuple[int, Candidate]]
) -> None:
    if best is None:
        rank, candidate = left[0] if left else (0, None)
        if candidate is None:
            answer.add("Nothing else is worth testing: no other proposal is left. Keep what runs now.")
            return
        answer.focus = candidate.plan
        answer.add("Test next:", line(conversation, candidate, rank))
        return
    for rank, candidate in left:
        gain = _gain_over(candidate, best)
        if gain is not None and gain > STEP_TIME_VARIATION:
            answer.focus = candidate.plan
            shorter = f"its step is expected to be {format_percent(gain)} shorter than that of {best.plan}"
            answer.add(f"Test next proposal {rank}, as {shorter}:", line(conversation, candidate, rank))
            return
    answer.focus = best.plan
    step = _seconds(best)
    known = f" at {step} a step" if step else ""
    rest = (
        "no other proposal is expected to beat it by more than" if left else "no other proposal is left to beat it by"
    )
    answer.add(
        f"Nothing else is worth testing: {best.plan} is the fastest that was measured{known}, and {rest} the"
        f" {format_percent(STEP_TIME_VARIATION, 0)} by which undisturbed steps vary. Run with it."
    )


def _best(conversation: Conversation, measured: Sequence[StatedFact]) -> Candidate | None:
    """The fastest plan that was measured, if it is faster than what runs now."""
    plans = [fact.plan for fact in measured]
    known = [one for one in conversation.revised.ranked.candidates if one.plan in plans]
    best = min(known, key=lambda one: _step(one) or float("inf"), default=None)
    relative = best.prediction.relative_step_time if best else None
    return None if relative is not None and relative.value >= 1 else best


def _gain_over(candidate: Candidate, best: Candidate) -> float | None:
    """By which share a step is expected to be shorter than the best measured one."""
    own, other = _step(candidate), _step(best)
    return None if own is None or other is None else 1 - own / other


def _step(candidate: Candidate) -> float | None:
    """Seconds of a step, or its share of what runs now where seconds are not known."""
    prediction = candidate.prediction
    quantity = prediction.step_time or prediction.relative_step_time
    return quantity.value if quantity else None


def _seconds(candidate: Candidate) -> str | None:
    step = candidate.prediction.step_time
    return format_seconds(step.value) if step else None
