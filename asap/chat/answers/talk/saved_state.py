"""Whether a checkpoint of now goes on under another plan: "can I resume from my checkpoint with 1?"."""

import re

from asap.chat.answers.single_plans.whole_plan import plan_to_test
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.question import Question
from asap.plans.launchers import Stack, stack_of

_CHECKPOINT = r"(?:checkpoints?|ckpts?|saved (?:state|weights|model)|optimizer state)"
_RESUMES = (
    r"(?:re-?shard\w*|convert\w*|resum\w*|restor\w*|re-?load\w*|load\w*|continu\w*|restart\w*|go(?:es)? on"
    r"|reus\w*|keep using"
    r"|compat\w*|portable|still (?:good|valid|usable|work\w*)|usable|carry over|invalid\w*|break\w*"
    r"|start(?:ing)? (?:over|from scratch|fresh))"
)
_ASKS = re.compile(rf"\b{_RESUMES}\b[^.?!]*\b{_CHECKPOINT}\b|\b{_CHECKPOINT}\b[^.?!]*\b{_RESUMES}\b", re.I)
_SECONDS = {"s", "min", "h", "GiB", "GB"}
_OF_CORE = (
    "a distributed checkpoint (torch_dist) loads its weights under other degrees, and the optimizer's state where"
    " that was saved fully reshardable"
)
_LOADS: dict[Stack, str] = {
    "maxtext": "Orbax restores into the sharding of the new run",
    "megatron": f"{_OF_CORE}; the older format has to be converted",
    "nemo": f"{_OF_CORE}; one file to each rank has to be converted",
    "bridge": _OF_CORE,
    "torchtitan": "its distributed checkpoints (DCP) are sharded anew as they are loaded",
    "deepspeed": "ZeRO's shards have to be converted to a universal checkpoint first",
}


def asks_saved_state(question: Question) -> bool:
    """Whether it asks if a checkpoint goes on under another plan; how long one takes is another question."""
    timed = any(amount.unit in _SECONDS for amount in question.amounts)
    return _ASKS.search(question.text) is not None and not timed and question.change.empty


def saved_state(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """What of a plan changes how a checkpoint is laid out, and how the run's stack takes it."""
    now, plan = conversation.study.plan, plan_to_test(conversation, question)
    answer.complete = True
    if plan is None or now is None:
        answer.add('Name the plan, as in "can I resume with proposal 1?".')
        return
    answer.focus = plan
    if (plan.ici, plan.dcn, plan.pipeline_repeats) == (now.ici, now.dcn, now.pipeline_repeats):
        answer.add(f"{plan}: nothing of a checkpoint changes, as the mesh is the same.")
        return
    framework = conversation.study.experiment.workload.framework
    known = _LOADS.get(stack_of(framework)) if framework else None
    loads = known or "whether it loads one under other degrees, its documentation tells"
    answer.add(
        f"{plan}: the weights and the optimizer's state are the same numbers, split otherwise."
        f" {framework or 'The launcher'}: {loads}.",
        "I have not tried yours: load it for one step, and compare the loss with that of the old run.",
    )
