"""The fewest chips that train so many tokens a second: the slice of now halved or doubled until they do."""

import re
from dataclasses import dataclass

from asap.chat.answers.other_runs.fewest_chips import fastest_that_fits
from asap.chat.answers.phrasing import figures_of
from asap.chat.answers.single_plans.throughput import PERIODS
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.scenario.completeness import is_complete, missing
from asap.chat.understanding.quantities.changes import Change
from asap.chat.understanding.question import Question
from asap.chat.understanding.words.questions import is_question
from asap.core.errors import InsufficientEvidenceError
from asap.core.units import counted, significant
from asap.prediction.prediction import Prediction

_DOUBLINGS = 4
_MACHINES = (
    r"(?:chips?|gpus?|tpus?|devices?|cores?|accelerators?|nodes?|hosts?|machines?|pods?|slices?|cluster|hardware"
    r"|(?:v\d[a-z]{0,2}|[abh]\d{2,3}|gb200)s?)"
)
_HOW_MANY = re.compile(
    r"\b(?:how (?:many|few|much|big|large|small)|fewest|min(?:imum|imal)?|smallest|number of|least|enough"
    r"|what size|size of)\b"
    rf"[^.?!]*\b{_MACHINES}\b"
    r"|\bwhat\s+(?:(?:would|does|will|do|did)\s+)?(?:it|i|we)\s+(?:would\s+)?(?:take|need)\b"
    r"|\bwhat\s+(?:is|'s)\s+(?:needed|required)\b|\bwhat\s+(?:scale|hardware)\b",
    re.I,
)

_UNTIL = re.compile(rf"(?<![\w.,])(\d+(?:\.\d+)?)\s*({'|'.join(PERIODS)})s?\b", re.I)


@dataclass(frozen=True)
class RateWanted:
    """Tokens/s that are wanted, of so many chips where a question names them."""

    tokens_per_second: float
    chips: int | None = None


def rate_wanted(question: Question) -> RateWanted | None:
    """The rate for which a question asks how many chips it needs, or whether the chips that it names reach it."""
    rate = next((amount.value for amount in question.amounts if amount.unit == "tokens/s"), None) or _by_then(question)
    chips = question.change.get("chips")
    if rate is None:
        return None
    if chips is not None and not chips.factor and question.change == Change(counts=(("chips", chips),)):
        return RateWanted(rate, round(chips.value)) if is_question(question.text) else None
    return RateWanted(rate) if _HOW_MANY.search(question.text) else None


def _by_then(question: Question) -> float | None:
    """Tokens/s that train so many tokens in so many days; ``None`` where a question does not name both."""
    tokens = next((amount.value for amount in question.amounts if amount.unit == "tokens"), None)
    until = _UNTIL.search(question.text)
    return tokens / (float(until[1]) * PERIODS[until[2].lower()]) if tokens and until and float(until[1]) else None


def chips_for_rate(conversation: Conversation, answer: ReplyBuilder, wanted: RateWanted) -> None:
    """At the batch of now, and at one that grows with the chips.

    Raises:
        InsufficientEvidenceError: hardware, batch or architecture is not known.
    """
    study = conversation.study
    batch = study.experiment.workload.global_batch
    if study.slice is None or batch is None or not is_complete(study):
        reason = f"how a rate changes with the chips follows from {missing(study)}, unknown here"
        hint = 'asap experiments add ID --config FILE; until then ask "which proposal gives 20 % more throughput?"'
        raise InsufficientEvidenceError(reason, where=conversation.id, hint=hint)
    now, rate, chips = study.slice.devices, wanted.tokens_per_second, wanted.chips
    where = f"the {now} chips of now halved or doubled" if chips is None else f"{chips} chips"
    answer.add(f"{significant(rate, 4)} tokens/s, on {where}, with the best plan there:")
    each = f"{counted(batch / now, 'sequence')} a chip, as now"
    for label, grows in ((f"batch of now ({batch})", False), (f"batch that grows with the chips ({each})", True)):
        of_now = batch if grows else None
        found = _fewest(conversation, rate, now, of_now) if chips is None else _there(conversation, chips, now, of_now)
        if found is None:
            most = f"on up to {now * 2**_DOUBLINGS} chips" if chips is None else f"that any plan fits on {chips} chips"
            answer.add(f"- {label}: not predicted {most}")
            continue
        answer.add(f"- {label}: {found.plan.devices} chips, {found.plan}: {figures_of(found)}; {_surely(found, rate)}")
        answer.add_figure(f"{found.plan} on {found.plan.devices} chips: tokens per second", found.tokens_per_second)
    between = " Counts between a halving and a doubling are not looked at." if chips is None else ""
    answer.add(f"A larger batch is another training recipe.{between}")


def _there(conversation: Conversation, chips: int, now: int, batch: int | None) -> Prediction | None:
    """The fastest plan of so many chips that fits; ``batch`` is that of now, if it is to grow with them."""
    return fastest_that_fits(conversation, chips, batch and max(1, batch * chips // now))


def _surely(found: Prediction, rate: float) -> str:
    """Whether the rate is reached at the slow end of the interval as well."""
    reached = found.tokens_per_second
    if reached is None or reached.low is None:
        return "its interval is not known"
    if reached.value < rate:
        end = significant(reached.high or reached.value, 4)
        return f"that is short of it; the fast end of the interval is {end} tokens/s"
    does = "still reaches it" if reached.low >= rate else "does not reach it"
    return f"the slow end of the interval, {significant(reached.low, 4)} tokens/s, {does}"


def _fewest(conversation: Conversation, rate: float, now: int, batch: int | None) -> Prediction | None:
    """Upwards until it is reached, or downwards as long as it is; ``batch`` is that of now, if it is to grow."""

    def reached(chips: int) -> Prediction | None:
        there = _there(conversation, chips, now, batch)
        enough = there and there.tokens_per_second and there.tokens_per_second.value >= rate
        return there if enough else None

    best = reached(now)
    if best is None:
        return next(filter(None, (reached(now * 2**power) for power in range(1, _DOUBLINGS + 1))), None)
    for power in range(1, now.bit_length()):
        fewer = reached(now // 2**power)
        if fewer is None:
            break
        best = fewer
    return best
