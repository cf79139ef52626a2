"""What a limit that was stated costs: the first proposal with it beside the first one without it."""

import re

from asap.chat.answers.phrasing import line
from asap.chat.answers.single_plans.figures import prediction_of
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.question import Question
from asap.core.units import format_percent
from asap.evidence.claims import Claim
from asap.evidence.fact import StatedFact

_COST = re.compile(
    r"\b(?:what|how much)\b[^.?!]*\b(?:cost|costs|costing|lose|losing|lost|giv(?:e|ing) up|price of)\b", re.I
)
_WITHOUT = re.compile(r"\bwithout (?:that|this|it)\b", re.I)
_LIMIT = re.compile(r"\b(?:limit|cap|constraint|restriction|ceiling)\b", re.I)
_POINTS = re.compile(r"\b(?:that|this|it)\b", re.I)
_OTHERS = re.compile(r"[$€]|\b(?:dollars?|money|tokens?|chip|gpu|tpu|test|run|memory|hbm)\b", re.I)


def limits_asked(conversation: Conversation, question: Question) -> tuple[StatedFact, ...]:
    """The limits whose cost is asked for: those of the last message, or all where limits are named."""
    text = question.text
    if (
        not (_COST.search(text) or _WITHOUT.search(text))
        or _OTHERS.search(text)
        or question.refs.written
        or not question.change.empty
    ):
        return ()
    stated = tuple(fact for fact in conversation.evidence if fact.claim is Claim.CONSTRAINT)
    latest = tuple(fact for fact in conversation.latest if fact in stated)
    if _LIMIT.search(text):
        return latest or stated
    return latest if _POINTS.search(text) else ()


def limit_cost(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """Say it; raises InsufficientEvidenceError where no plan can be ranked."""
    limits = limits_asked(conversation, question)
    without = conversation.without_evidence(limits)
    said = "; ".join(str(limit).removeprefix("constraint: ") for limit in limits)
    here, there = conversation.proposals[:1], without.proposals[:1]
    if not here or not there:
        answer.add(f"With the limit ({said}) {'nothing is proposed' if not here else 'nothing is lost'}.")
        return
    (now,), (before,) = here, there
    answer.focus = now.plan
    if now.plan == before.plan:
        answer.add(f"Nothing: {now.plan} is first with the limit ({said}) and without it.")
        return
    answer.add(
        f"first with the limit ({said}): {line(conversation, now)}", f"first without it: {line(without, before)}"
    )
    steps = [prediction_of(one, plan.plan).relative_step_time for one, plan in ((conversation, now), (without, before))]
    if steps[0] is not None and steps[1] is not None:
        more = steps[0].value / steps[1].value - 1
        answer.add(
            f"The limit costs {format_percent(more)} of the step."
            if more > 0
            else "By the prediction it costs no time."
        )
        answer.add_figure("step time over what runs now, with the limit", steps[0])
