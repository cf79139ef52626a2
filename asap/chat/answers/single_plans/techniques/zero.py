"""The stages of ZeRO: the third is FSDP in the words of a plan, the others keep parameters whole on each data rank."""

import re

from asap.chat.answers.phrasing import figures_of
from asap.chat.answers.single_plans.directions import no_such_plan, wished_plans
from asap.chat.answers.single_plans.plans import why_not
from asap.chat.answers.single_plans.techniques.distributed_optimizer import with_stage
from asap.chat.answers.single_plans.techniques.technique_worth import plan_in_question, verdict
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.scenario.scenario import scenario_of
from asap.chat.understanding.question import Question
from asap.chat.understanding.references.wishes import Wish
from asap.chat.understanding.topics.topics import Topic
from asap.plans.plan import Mesh

_NAMED = re.compile(r"\b(?:deepspeed )?zero[- ]?(?:stage[- ]?)?(?P<stage>[123])\b", re.I)
_SHARDED = {1: "optimizer state", 2: "gradients and optimizer state"}
"""What each stage that keeps parameters whole shards."""
_WEIGHED = re.compile(
    r"\b(?:would|could|should|better|faster|slower|worth|what if|(?:what|how) about|switch\w*|instead"
    r"|enabl\w*|us(?:e|ing)|help\w*|fits?|oom|memory|hbm)\b|^\W*(?:and\W+)?zero-?\d\W*$",
    re.I,
)


def asks_zero(question: Question) -> bool:
    """Whether it names ZeRO-3, or asks what another stage would bring, and names no degree."""
    stages = [found["stage"] for found in _NAMED.finditer(question.text)]
    asked = "3" in stages or (bool(stages) and _WEIGHED.search(question.text) is not None)
    return asked and not question.refs.written


def zero(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """Of each stage that is named; raises InsufficientEvidenceError where the plan is not known."""
    stages = dict.fromkeys(int(found["stage"]) for found in _NAMED.finditer(question.text))
    for stage in stages:
        if stage in _SHARDED:
            _with_whole_parameters(conversation, answer, question, stage)
        else:
            _parameters(conversation, answer, question)


def _parameters(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """That the axis data is it; where the run has none, the best plan with it."""
    answer.topic = Topic.WHY_NOT
    now = conversation.study.plan
    answer.add("ZeRO-3 is FSDP here, the axis data: parameters, gradients and optimizer state are sharded over it.")
    if now is not None and now.degree("data") > 1:
        whole = now.degree("data") == now.devices
        answer.add(
            f"It is on already: {now} shards them over {'all ' if whole else ''}{now.degree('data')} of {now.devices}"
            " devices."
        )
    if now is None or now.degree("data") < now.devices:
        wish = Wish("data", "more")
        more = wished_plans(conversation, wish)
        for plan in more:
            why_not(conversation, answer, plan)
        if not more:
            no_such_plan(conversation, answer, wish)


def _with_whole_parameters(conversation: Conversation, answer: ReplyBuilder, question: Question, stage: int) -> None:
    """The plan under a stage that keeps parameters whole on each data rank, beside the plan as it is."""
    answer.topic = Topic.WHAT_IF
    study, plan = conversation.study, plan_in_question(conversation, question)
    if (change := question.of_scenario) is not None and change.remat != "any":
        scenario = scenario_of(study, change, plan)
        study, plan = scenario.study, scenario.plan
        answer.add(*([f"With {' and '.join(scenario.changes)}:"] if scenario.changes else []))
    ranks = plan.degree("data") * plan.degree("replica")
    answer.add(f"ZeRO-{stage} shards {_SHARDED[stage]} over the data ranks and keeps parameters whole on each.")
    if ranks == 1:
        answer.add(f"{plan} has no data ranks, so it changes nothing.")
        return
    whole = plan.model_copy(update={"ici": _replicated(plan.ici), "dcn": _replicated(plan.dcn)})
    having, now = with_stage(study, whole, stage), with_stage(study, plan, study.experiment.workload.zero_stage)
    answer.add(f"- with it, {whole}: {figures_of(having)}", f"- as it is, {plan}: {figures_of(now)}")
    answer.add(verdict(having, now))
    answer.add_figure(f"{whole} with ZeRO-{stage}: step time", having.step_time)


def _replicated(mesh: Mesh) -> Mesh:
    """The mesh with copies where it shards parameters."""
    return Mesh(**{**mesh.model_dump(), "data": 1, "replica": mesh.replica * mesh.data})
