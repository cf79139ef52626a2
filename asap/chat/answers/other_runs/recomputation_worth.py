"""Whether recomputation pays: a plan with each policy, and the fastest of those that fit."""

from asap.chat.answers.other_runs.what_if import policies
from asap.chat.answers.single_plans.techniques.technique_worth import plan_in_question
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.quantities.changes import Change
from asap.chat.understanding.question import Question
from asap.chat.understanding.topics.topics import Topic
from asap.chat.understanding.words.worth import asks_worth
from asap.core.units import format_percent
from asap.diagnosis.facts import STEP_TIME_VARIATION
from asap.plans import Remat
from asap.prediction.prediction import Prediction
from asap.proposals.selection.candidate import fits


def asks_worth_of_recomputation(question: Question) -> bool:
    """Whether it asks if recomputation pays, and nothing beside it is to change."""
    only = question.change == Change(remat=question.change.remat) and question.change.remat is not None
    return only and not question.refs.written and asks_worth(question.text)


def recomputation_worth(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """Of what runs now, or of the plan that was spoken of where the question says so.

    Raises:
        InsufficientEvidenceError: the plan or the architecture is not on record.
    """
    answer.topic = Topic.WHAT_IF
    plan = plan_in_question(conversation, question)
    found = policies(conversation, answer, plan)
    answer.focus = plan
    known = {one.plan.remat: one for one in found if one.step_time is not None}
    if (now := known.get(plan.remat)) is not None:
        answer.add(_verdict(now, known.get(Remat.NONE), [one for one in known.values() if fits(one)]))


def _verdict(now: Prediction, without: Prediction | None, fitting: list[Prediction]) -> str:
    """What to do about the policy that a plan has, ``fitting`` being those that fit."""
    needed = "Without any, HBM is exceeded. " if without is not None and not fits(without) else ""
    best = min(fitting, key=_seconds, default=None)
    if best is None:
        return "No policy is predicted to fit."
    gain = 1 - _seconds(best) / _seconds(now)
    if best.plan.remat == now.plan.remat or (fits(now) and gain < STEP_TIME_VARIATION):
        return f"{needed}Keep {now.plan.remat}: nothing that fits is predicted to be faster by more than steps vary."
    change = f"{format_percent(abs(gain))} {'shorter' if gain > 0 else 'longer'} than with {now.plan.remat}"
    return f"{needed}{best.plan.remat} is the fastest that fits: the step is predicted to be {change}."


def _seconds(prediction: Prediction) -> float:
    return prediction.step_time.value if prediction.step_time else float("inf")
