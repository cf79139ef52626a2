"""From a text to the question that it asks.

What a question leaves out is taken from the one before: "and for proposal 3?", "per chip?", "same with 32 chips".
"""

import re
from collections.abc import Sequence

from asap.chat.understanding.ellipsis import INHERITED, is_ellipsis, is_of_what_stays, is_short, says_nothing
from asap.chat.understanding.follow_up import (
    CHANGED,
    change_on_top,
    completes,
    goes_on,
    plan_on_top,
    with_batch_of_chips,
)
from asap.chat.understanding.quantities.already_so import (
    real_change,
    without_dropped,
    without_settings_as_they_are,
    without_what_is_so,
)
from asap.chat.understanding.quantities.amounts import Amount, amounts
from asap.chat.understanding.quantities.blanked import blanked
from asap.chat.understanding.quantities.changes import (
    Change,
    To,
    change_in,
    is_of_settings,
    plan_settings,
    varied,
    without_things,
)
from asap.chat.understanding.quantities.hardware.machines import counted_in_chips
from asap.chat.understanding.quantities.prices import as_budget, of_a_chip
from asap.chat.understanding.quantities.rematerialisation.own_selective import as_launcher_means
from asap.chat.understanding.quantities.sweeps import sweep_in
from asap.chat.understanding.quantities.things import is_of_a_part, things_kept, things_named
from asap.chat.understanding.question import Question
from asap.chat.understanding.references.meant import plan_meant
from asap.chat.understanding.references.operations import operations_named
from asap.chat.understanding.references.ranks import Lone
from asap.chat.understanding.references.references import Mention, References, references
from asap.chat.understanding.scene import Scene
from asap.chat.understanding.topic_of import topic_of
from asap.chat.understanding.topics.masks import loose
from asap.chat.understanding.topics.topics import Topic
from asap.chat.understanding.words.questions import is_question
from asap.chat.understanding.words.settings.compiler_flags import without_flags
from asap.chat.understanding.words.voices import tells_of_advice
from asap.chat.understanding.words.worth import axes_in_short
from asap.evidence.claims import Claim
from asap.plans import Plan
from asap.plans.prose import plan_spans
from asap.study.study import Study

_BARE_NUMBER_TOPICS = {
    Topic.COMPARE, Topic.EXPLAIN, Topic.MAXTEXT, Topic.SURE, Topic.WHY_NOT, Topic.OPINION, Topic.FALSE_CLAIM,
    Topic.MEMORY, Topic.THROUGHPUT, Topic.CHANGE_OF_MIND,
}  # fmt: skip
"""Topics in which a lone digit is the number of a proposal."""
_SHORT_MESSAGE_WORDS = 3
_ABOUT_OPERATIONS = {Topic.OPERATIONS, Topic.ROOFLINE, Topic.COLLECTIVES}
_IT = re.compile(r"\b(?:it|its|that|this)\b", re.I)
_COST = re.compile(
    r"\s*(?:the |our |as much |more |less )*"
    r"(?:comm\w*|traffic|time|costs?|compute|flops?|memory|hbm|price|work|latency|bubble|step[- ]?time|step(?=\W*$)"
    r"|runtime|duration|throughput|speed|mfu)\b",
    re.I,
)
_ITS = re.compile(r"\b(?:its|it|that|this|then)\b", re.I)
_WORTH = re.compile(r"\bworth\s+$", re.I)
_FIGURES = {Topic.MEMORY, Topic.THROUGHPUT}
_OF_A_PLAN = {
    Topic.WHY_NOT, Topic.WHAT_IF, Topic.EXPLAIN, Topic.COMPARE, Topic.VERIFY, Topic.MEMORY, Topic.THROUGHPUT,
}  # fmt: skip
"""Topics of a plan or of a change, whose figures a short question asks for: "mem?", "fits?", "in tokens/s?"."""
_OF_ONE_PLAN = {
    *INHERITED, Topic.WORTH_IT, Topic.TEST_COST, Topic.VERIFY, Topic.PREDICTION_CHECK, Topic.BASIS, Topic.SHARDING,
    Topic.EFFICIENCY, Topic.COMPONENTS, Topic.SEQUENCE_PARALLEL, Topic.AFTERWARDS, Topic.BOTTLENECK,
}  # fmt: skip
"""Topics of a question that may be of another plan than was answered."""
_OF_SETTINGS = {Topic.MAXTEXT, Topic.EXPLAIN, Topic.SURE, Topic.VERIFY}
"""Topics of a plan, which may be named with another setting: "the flags of 3 without the offload"."""


def read_question(text: str, scene: Scene) -> Question:
    """Understand a question; raises PlanError where a plan in it is malformed."""
    study, context = scene.study, scene.context
    if context.change is not None:
        context = context.model_copy(update={"change": without_dropped(context.change, text)})
    meant = plan_meant(text, scene.order, study.plan)
    if meant is not None and context.topic in _OF_ONE_PLAN:
        return _of_plan_meant(text, meant, scene)
    rest = without_flags(blanked(text, [(start, end) for start, end, _ in plan_spans(text)]))
    said = as_budget(rest, counted_in_chips(rest, amounts(rest), study.slice))
    found = [a for a in of_a_chip(rest, said, study.slice) if not _just_stated(a, rest, scene)]
    named = operations_named(rest, study)
    numbered = {mention.start for mention in _references(text, scene, found).mentions if mention.way == "rank"}
    counts = [a for a in found if a.start not in numbered and not _inside(a, rest, named) and not _of_interval(a, rest)]
    counts = [a for a in counts if not (_of_a_cost(a, rest) or is_of_a_part(a, rest))]
    change, used = change_in(_without(rest, named), counts, context.change)
    lone = [a for a in found if not a.unit and a not in used and a.value in range(1, 10)]
    topic, perhaps = topic_of(text, found, named, lone, context)
    if context.change is not None and topic not in _BARE_NUMBER_TOPICS:
        change, more = varied(change, context.change, [a for a in counts if a not in used], text)
        used += more
    if (goes_on(text) or completes(change, context.change)) and not change.empty:
        change = change_on_top(change, context.change)
    change = with_batch_of_chips(text, change, context.change)
    change = real_change(change, study)
    change = change.model_copy(update={"remat": as_launcher_means(change.remat, text, study)})
    if topic is Topic.TEST_COST and change.hardware is not None:
        topic = Topic.THROUGHPUT
    change = without_settings_as_they_are(change, study, text)
    bare = topic in _BARE_NUMBER_TOPICS or (len(text.split()) <= _SHORT_MESSAGE_WORDS and change.empty)
    refs = _references(text, scene, [*found, *_counted(used)], "all" if bare else "spoken")
    if refs.wish is not None or refs.written or axes_in_short(text):
        change = without_what_is_so(change, study)
    if context.topic not in INHERITED and says_nothing(rest, found, refs, change):
        topic = Topic.UNKNOWN
    if topic is Topic.UNKNOWN and refs.plans and any(a.unit == "s" for a in found) and not is_question(text):
        topic = Topic.REPORTED
    if refs.settings is not None:
        change = _with_settings(change, refs.settings)
    continues = goes_on(text) and {topic, context.topic} <= CHANGED
    ellipsis = is_ellipsis(text, refs, found, context) or (continues and not change.empty and not refs.mentions)
    if ellipsis and context.topic is not None:
        bill = context.topic is Topic.THROUGHPUT and context.tokens is not None
        topic = Topic.WHAT_IF if not change.empty and not bill else context.topic
    if ellipsis and topic is Topic.WHAT_IF and change.empty and refs.ranked and context.change is not None:
        change = context.change
    kept = change.empty and not refs.mentions and context.change is not None and is_of_what_stays(text)
    if kept and context.change is not None:
        ellipsis, topic, change = True, Topic.WHAT_IF, without_things(context.change, things_kept(text))
    if tells_of_advice(text) and not is_question(text):
        change, topic = Change(), Topic.OPINION
    technique = refs.wish is not None or not change.empty
    mentions = [one for one in refs.mentions if not (technique and _is_of_worth(one, text))]
    meant = [mention.plan for mention in mentions if not _is_the_change(mention, text, used)]
    plans = tuple(dict.fromkeys(plan for plan in meant if plan.devices > 1))
    if continues and change.empty and len(plans) == 1 and list(plans) == refs.written:
        plans = tuple(plan_on_top(study, earlier, plans[0]) for earlier in context.plans[:1]) or plans
        change = context.change or change
        topic = Topic.WHAT_IF if not change.empty else topic
    if topic in _OF_SETTINGS and len(plans) == 1 and is_of_settings(change):
        plans, change = (plan_settings(change, plans[0], study.experiment.workload.global_batch),), Change()
    of_before = ellipsis and topic in _FIGURES
    limited = _limited(scene)
    if (
        topic in _FIGURES
        and not limited
        and context.topic in _OF_A_PLAN
        and change.empty
        and not refs.mentions
        and is_short(text)
    ):
        ellipsis = of_before = True
        spoken_of = (scene.focus,) if scene.focus is not None else context.plans
        context = context.model_copy(update={"plans": context.plans or spoken_of})
    if (of_before or (continues and topic is Topic.SEQUENCE_PARALLEL)) and not plans:
        plans = context.plans
    if not named and not plans and (ellipsis or (topic in _ABOUT_OPERATIONS and _IT.search(rest))):
        named = context.operations
    if topic in _FIGURES and not plans and change.empty and limited and (_ITS.search(text) or is_short(text)):
        plans = scene.order[:1]
    ranks = {mention.start for mention in refs.mentions if mention.way == "rank"}
    left = (a for a in counts if a not in used and a.start not in ranks and not a.before)
    unused = tuple(a for a in left if not _is_of_the_run(a, study))
    return Question(
        text, topic, refs, change, plans, named, tuple(found), unused, context, ellipsis, sweep_in(text), perhaps
    )


def _limited(scene: Scene) -> bool:
    """Whether the last line stated limits and no more, so that what is asked next is of the plan that keeps them."""
    return bool(scene.latest) and all(fact.claim is Claim.CONSTRAINT for fact in scene.latest)


def _just_stated(amount: Amount, text: str, scene: Scene) -> bool:
    """Whether a lone number is what the last message stated of the run: "and with 64, what MFU" after "batch is 64"."""
    stated = [fact.value for fact in scene.latest if fact.claim in {Claim.BATCH, Claim.SEQUENCE}]
    return amount.unit == "" and amount.value in stated and not things_named(text)


def _of_plan_meant(text: str, plan: Plan, scene: Scene) -> Question:
    """The question before, of the plan that was meant."""
    context = scene.context
    refs = _references(text, scene, amounts(text), "all")
    change = context.change if context.topic is Topic.WHAT_IF and context.change is not None else Change()
    topic = context.topic or Topic.EXPLAIN
    return Question(text, topic, refs, change, (plan,), (), (), (), context, ellipsis=True)


def _references(text: str, scene: Scene, found: Sequence[Amount], lone: Lone = "none") -> References:
    return references(text, scene.order, scene.focus, scene.study.plan, found, lone, scene.context.plans)


def _is_of_the_run(amount: Amount, study: Study) -> bool:
    """Whether a bare number is the batch or the sequence as it is: "what fits at 2048"."""
    workload = study.experiment.workload
    return amount.unit == "" and amount.value in {workload.global_batch, workload.sequence_length}


def _inside(amount: Amount, text: str, named: Sequence[str]) -> bool:
    """Whether a number is part of an operation's name: all-reduce.70."""
    return any(m.start() <= amount.start < m.end() for n in named for m in re.finditer(loose(n), text, re.I))


def _of_interval(amount: Amount, text: str) -> bool:
    """Whether a number is part of "90 % interval"."""
    return amount.unit == "%" and text[amount.end :].lstrip(" -").lower().startswith(("interval", "confidence"))


def _of_a_cost(amount: Amount, text: str) -> bool:
    """Whether a factor is of what a step costs, and of nothing that is set: "4x the communication"."""
    return amount.unit == "x" and _COST.match(text, amount.end) is not None


def _without(text: str, named: Sequence[str]) -> str:
    for name in named:
        text = re.sub(loose(name), lambda m: " " * len(m.group()), text, flags=re.I)
    return text


def _is_the_change(mention: Mention, text: str, used: Sequence[Amount]) -> bool:
    """Whether "it" is the run with the change of the sentence before: "we go to 8k tokens. does it fit?"."""
    between = [text[amount.end : mention.start] for amount in used if amount.end <= mention.start]
    return mention.way == "pointing" and any(re.search(r"[.;!?]\s", part) for part in between)


def _is_of_worth(mention: Mention, text: str) -> bool:
    """Whether "it" is of an idiom that stands for no plan: "is fp8 worth it?"."""
    return mention.way == "pointing" and _WORTH.search(text[: mention.start]) is not None


def _counted(used: Sequence[Amount]) -> list[Amount]:
    """Amounts of a change, which are no ranks."""
    return [Amount(a.value, a.unit or "count", a.start, a.end, a.text) for a in used]


def _with_settings(change: Change, settings: Plan) -> Change:
    counts = dict(change.counts)
    if settings.microbatches is not None:
        counts["microbatches"] = To(value=settings.microbatches)
    fields: dict[str, object] = {"counts": tuple(sorted(counts.items()))}
    if settings.remat is not None:
        fields["remat"] = settings.remat
    return change.model_copy(update=fields)
