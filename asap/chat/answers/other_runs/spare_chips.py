"""Chips that could be given back: the fastest plan on fewer chips, and how much of the throughput of now it keeps."""

from asap.chat.answers.other_runs.fewest_chips import fastest_that_fits
from asap.chat.answers.phrasing import figures_of
from asap.chat.answers.single_plans.figures import prediction_of
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.question import Question
from asap.core.errors import InsufficientEvidenceError
from asap.core.units import format_percent
from asap.evidence.anchor import modelled_now
from asap.prediction.prediction import Prediction

_EIGHTHS = (7, 6, 5, 4, 3, 2)
_NOISE = 0.005
_HOPELESS = 0.6
"""Share of what is to be kept below which still fewer chips are not looked at."""


def spare_chips(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """At the batch of now; raises InsufficientEvidenceError where hardware, plan or step time is not known."""
    study, kept = conversation.study, _kept(question)
    if study.slice is None or study.plan is None:
        raise InsufficientEvidenceError("the hardware or the plan is not known", where=conversation.id)
    now = modelled_now(study) or prediction_of(conversation, study.plan)
    if now.step_time is None or now.method == "profile_ratios":
        reason = "what fewer chips would do follows from the architecture, which is not on record"
        raise InsufficientEvidenceError(reason, where=conversation.id, hint="asap experiments add ID --config FILE")
    chips = study.slice.devices
    answer.add(
        f"What runs now on {chips} chips: {figures_of(now)}.",
        "On fewer, each with its fastest plan that is predicted to fit (the batch stays, modelled):",
    )
    enough: tuple[int, Prediction] | None = None
    impossible: list[str] = []
    for count in (chips * eighths // 8 for eighths in _EIGHTHS if chips * eighths % 8 == 0):
        found = fastest_that_fits(conversation, count)
        if found is None or found.step_time is None:
            impossible.append(str(count))
            continue
        share = now.step_time.value / found.step_time.value
        answer.add(f"- {count} ({chips - count} given back): {found.plan}: {figures_of(found)}; {_percent(share)}")
        answer.add_figure(f"{found.plan} on {count} chips: step time", found.step_time)
        if share >= kept - _NOISE:
            enough = count, found
        elif share < _HOPELESS * kept:
            break
    if impossible:
        answer.add(f"- {', '.join(impossible)}: no plan that divides the batch is known to fit")
    answer.add(_verdict(chips, kept, enough))


def _kept(question: Question) -> float:
    """The share of the throughput that is to be kept: all of it, "90 %", or all but "5 % slower"."""
    named = next((amount.value / 100 for amount in question.amounts if amount.unit == "%"), 1.0)
    return named if named >= 0.5 else 1 - named


def _verdict(chips: int, kept: float, enough: tuple[int, Prediction] | None) -> str:
    goal = "the throughput of now" if kept == 1 else f"{format_percent(kept, 0)} of the throughput of now"
    if enough is None:
        return f"None can be given back: no plan on fewer chips is expected to keep {goal}."
    count, found = enough
    return f"{chips - count} can be given back, and {goal} is expected to stay, with another plan: {found.plan}."


def _percent(share: float) -> str:
    return f"{format_percent(share, 0)} of the throughput of now"
