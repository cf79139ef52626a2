"""Megatron's distributed optimizer, which shards the optimizer state over data ranks: what it brings."""

import re

from asap.chat.answers.phrasing import figures_of
from asap.chat.answers.single_plans.megatron_fsdp import STACKS
from asap.chat.answers.single_plans.techniques.technique_worth import plan_in_question, verdict
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.question import Question
from asap.chat.understanding.topics.topics import Topic
from asap.plans import Plan
from asap.plans.launchers import stack_of
from asap.prediction.predict_study import expect
from asap.prediction.prediction import Prediction
from asap.study.changed import without_step_time
from asap.study.study import Study

_NAMED = re.compile(r"\b(?:dist(?:ributed)?[- ]opt(?:im(?:izer)?)?|zero[- ]?1)\b", re.I)
_ASKED = re.compile(
    r"\b(?:would|does|do|did|will|could|should|is|are|have|what (?:if|about)|how about)\b[^.?!]*"
    r"\b(?:help|bring|sav|worth|pay|enabl|use|using|turn|switch|add|gain|matter|what about|what if|with"
    r"|account|includ|consider|assum|model|count|know|on record|on\b|off\b|already)"
    r"|^\W*(?:(?:what|how) about|turn|switch|disabl\w+|enabl\w+|drop|use|without|with|no)\b",
    re.I,
)
_ALONE = re.compile(rf"\W*(?:(?:and|so|ok|with|the|a|now|then)\s+)*{_NAMED.pattern}\W*", re.I)
"""Names it and says no more: "and the distributed optimizer?"."""
_STATE = {None: "not on record", 0: "off"}


def asks_distributed_optimizer(study: Study, question: Question) -> bool:
    """Whether it asks what the distributed optimizer brings, in a run of a stack that has one."""
    known = stack_of(study.experiment.workload.framework) in STACKS
    asked = _ASKED.search(question.text) is not None or _ALONE.fullmatch(question.text) is not None
    return known and asked and _NAMED.search(question.text) is not None


def distributed_optimizer(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """A plan with it and without it; raises InsufficientEvidenceError where the plan is not known."""
    answer.topic = Topic.WHAT_IF
    study, plan = conversation.study, plan_in_question(conversation, question)
    copies = plan.degree("replica")
    answer.add(
        f"The distributed optimizer (ZeRO-1) is {_STATE.get(study.experiment.workload.zero_stage, 'on')}: it shards"
        f" the optimizer state over the data ranks (replica={copies}), and parameters stay whole on each."
    )
    if copies == 1:
        answer.add(f"Without plain data parallelism, as in {plan}, it changes nothing.")
        return
    having, without = (with_stage(study, plan, stage) for stage in (1, 0))
    for word, found in (("with", having), ("without", without)):
        answer.add(f"- {plan} {word} it: {figures_of(found)}")
        answer.add_figure(f"{plan} {word} it: step time", found.step_time)
    answer.add(verdict(having, without))


def with_stage(study: Study, plan: Plan, stage: int | None) -> Prediction:
    """A plan under a stage of ZeRO."""
    workload = study.experiment.workload.model_copy(update={"zero_stage": stage})
    return expect(without_step_time(study, study.experiment.model_copy(update={"workload": workload})), [plan])[0]
