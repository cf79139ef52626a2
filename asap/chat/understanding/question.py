"""A question as it is understood: its topic, the plans and the change it is about, its numbers.

What a question leaves out is taken from the one before: "and for proposal 3?", "per chip?", "same with 32 chips".
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from asap.chat.evidence.claims import Claim
from asap.chat.understanding.ellipsis import INHERITED, is_ellipsis, is_short, says_nothing
from asap.chat.understanding.follow_up import CHANGED, change_on_top, goes_on, plan_on_top
from asap.chat.understanding.quantities.already_so import real_change, without_what_is_so
from asap.chat.understanding.quantities.amounts import Amount, amounts
from asap.chat.understanding.quantities.blanked import blanked
from asap.chat.understanding.quantities.changes import Change, To, change_in, is_of_settings, plan_settings, varied
from asap.chat.understanding.quantities.machines import counted_in_chips
from asap.chat.understanding.quantities.prices import as_budget, of_a_chip, prices_in
from asap.chat.understanding.quantities.sweeps import Sweep, sweep_in
from asap.chat.understanding.quantities.things import things_named
from asap.chat.understanding.references.meant import plan_meant
from asap.chat.understanding.references.operations import operations_named
from asap.chat.understanding.references.ranks import Lone
from asap.chat.understanding.references.references import Mention, References, references
from asap.chat.understanding.scene import Context, Scene
from asap.chat.understanding.topics.masks import loose, masked
from asap.chat.understanding.topics.retrieval import PERHAPS, THRESHOLD, Match, retrieval
from asap.chat.understanding.topics.topics import Topic
from asap.chat.understanding.words.interjections import without_interjections
from asap.chat.understanding.words.questions import is_question
from asap.chat.understanding.words.worth import axes_in_short
from asap.plans import Plan
from asap.plans.prose import plan_spans

BARE_NUMBER_TOPICS = {
    Topic.COMPARE, Topic.EXPLAIN, Topic.MAXTEXT, Topic.SURE, Topic.WHY_NOT, Topic.OPINION, Topic.FALSE_CLAIM,
    Topic.MEMORY, Topic.THROUGHPUT, Topic.CHANGE_OF_MIND,
}  # fmt: skip
"""Topics in which a lone digit is the number of a proposal."""

SHORT_MESSAGE_WORDS = 3
_PRICED = {Topic.TEST_COST, Topic.RANK_BY}
_DEAREST = 100.0
"""No chip hour costs more US dollars; what is above is a budget or a bill."""
_TRAINING = 1e9
"""Tokens from which a number of them is a training run, and no sequence."""
_HYPOTHETICAL = re.compile(
    r"\b(?:what if|what happens|if|suppose|imagine|assum\w+|would|could|might|how about|what "
    r"about|switch\w*|mov\w+|instead|swap\w*"
    r"|go(?:ing)? (?:to|from|up|down)|scal\w+|with|on|train|use|double\w*|grow\w*|drop\w*|take"
    r"|quanti\w+|rematerial\w+|split|put|offload\w*)\b",
    re.I,
)
_ABOUT_OPERATIONS = {Topic.OPERATIONS, Topic.ROOFLINE, Topic.COLLECTIVES}
_ALREADY = re.compile(r"\balready\b", re.I)
_IT = re.compile(r"\b(?:it|its|that|this)\b", re.I)
_WORTH = re.compile(r"\bworth\s+$", re.I)
_QUOTES = re.compile(
    r"\byou (?:just |once |also |even |have )*(?:said|told (?:me|us)|claim(?:ed)?|wrote|stated|promised)\b", re.I
)
"""Quotes the engine."""
_LOOSE = {Topic.MEMORY, Topic.UNKNOWN, Topic.BASIS, Topic.SOURCES, Topic.OPINION}
"""Topics of what a quote is of, and of what is asked about it."""
_NEVER_PERHAPS = {
    Topic.THANKS, Topic.GREETING, Topic.UNKNOWN, Topic.HOSTILE, Topic.OUT_OF_SCOPE, Topic.REPORTED, Topic.RETRACTION,
    Topic.FALSE_CLAIM, Topic.WHAT_IF, Topic.WHY_NOT, Topic.OPINION, Topic.HELP, Topic.SERVING, Topic.LEARNING,
    Topic.TERM, Topic.PRINCIPLE,
}  # fmt: skip
"""Topics whose answer needs more than a guess at the topic."""
_FIGURES = {Topic.MEMORY, Topic.THROUGHPUT}
_OF_A_PLAN = {
    Topic.WHY_NOT, Topic.WHAT_IF, Topic.EXPLAIN, Topic.COMPARE, Topic.VERIFY, Topic.MEMORY, Topic.THROUGHPUT,
}  # fmt: skip
"""Topics of a plan or of a change, whose figures a short question asks for: "mem?", "fits?", "in tokens/s?"."""
OF_ONE_PLAN = {
    *INHERITED, Topic.WORTH_IT, Topic.TEST_COST, Topic.VERIFY, Topic.PREDICTION_CHECK, Topic.BASIS, Topic.SHARDING,
    Topic.EFFICIENCY, Topic.COMPONENTS, Topic.SEQUENCE_PARALLEL, Topic.AFTERWARDS, Topic.BOTTLENECK,
}  # fmt: skip
"""Topics of a question that may be of another plan than was answered."""
_OF_SETTINGS = {Topic.MAXTEXT, Topic.EXPLAIN, Topic.SURE, Topic.VERIFY}
"""Topics of a plan, which may be named with another setting: "the flags of 3 without the offload"."""
_SWITCHES = re.compile(r"\b(?:what if|if|use|using|switch\w*|with|train\w*|go(?:ing)? (?:to|back))\b", re.I)
"""Words with which even the optimizer of now is a change: "what if we used adamw"."""
_AGAINST_PREDICTION = re.compile(
    r"\b(?:slower|faster|longer|shorter|more|less|higher|lower|worse"
    r"|better)\b[^.?!]{0,30}\bthan (?:what )?(?:you (?:said|predict\w*"
    r"|told|claim\w*|estimat\w+|promis\w+|thought|had)|your (?:\w+ )?(?:number|figure|estimate|prediction"
    r"|forecast|guess|model)"
    r"|predicted|forecast)",
    re.I,
)
"""Sets what was measured beside what the engine had said."""
_CHIP_HOURS = re.compile(r"\b(?:chip|device|core|gpu|tpu)[ -]hours?\b", re.I)
_SCENARIO = re.compile(r"\b(?:that|then|it|still|in that case|there)\b", re.I)


@dataclass(frozen=True)
class Question:
    """One question, resolved; ``perhaps`` it is of a topic that is not near enough to be its topic."""

    text: str
    topic: Topic
    refs: References
    change: Change
    plans: tuple[Plan, ...]
    operations: tuple[str, ...]
    amounts: tuple[Amount, ...]
    unused: tuple[Amount, ...]
    context: Context
    ellipsis: bool
    sweep: Sweep | None = None
    perhaps: Topic | None = None

    @property
    def hypothetical(self) -> bool:
        """Whether it asks what would be."""
        return _HYPOTHETICAL.search(self.text) is not None or self.ellipsis

    @property
    def of_scenario(self) -> Change | None:
        """The change spoken of before, where this question goes on with it: "does that still fit?"."""
        short = self.ellipsis or _SCENARIO.search(self.text) is not None
        named = any(mention.way != "pointing" for mention in self.refs.mentions)
        goes_on = self.change.empty and not named and short
        return self.context.change if goes_on else None

    @property
    def tokens(self) -> float | None:
        """Tokens to train on, as asked now or before."""
        named = next((a.value for a in self.amounts if a.unit == "tokens"), None)
        return named or self.context.tokens

    @property
    def chip_hours(self) -> float | None:
        """A budget of chip hours: "5000 GPU hours", "a chip-hour budget of 5000"."""
        bare = [a for a in self.amounts if not a.unit and self.asks_chip_hours]
        return next((a.value for a in [*self.amounts, *bare] if a.unit == "chip-hours" or a in bare), None)

    @property
    def asks_chip_hours(self) -> bool:
        """Whether it speaks of chip hours."""
        return _CHIP_HOURS.search(self.text) is not None

    @property
    def names_money(self) -> bool:
        """Whether it names a price or a sum, of whatever it is."""
        return any(amount.unit.startswith("$") for amount in self.amounts)

    @property
    def prices(self) -> dict[str, float]:
        """Prices of a chip hour by chip, where they name theirs."""
        return prices_in(self.text, self.amounts)

    @property
    def dollars_named(self) -> float | None:
        """A price of a chip hour that it names."""
        return next((a.value for a in self.amounts if a.unit == "$" and a.value <= _DEAREST), None)

    @property
    def dollars(self) -> float | None:
        """A price of a chip hour; for the tokens of before, that of before."""
        named = self.dollars_named
        goes_on = self.ellipsis or self.budget is not None
        return named or (self.context.dollars if self.topic is Topic.THROUGHPUT and goes_on else None)

    @property
    def budget(self) -> float | None:
        """A sum of US dollars that is to be spent, and no price of a chip hour."""
        return next((a.value for a in self.amounts if a.unit == "$" and a.value > _DEAREST), None)


def read_question(text: str, scene: Scene) -> Question:
    """Understand a question; raises PlanError where a plan in it is malformed."""
    study, context = scene.study, scene.context
    meant = plan_meant(text, scene.order, study.plan)
    if meant is not None and context.topic in OF_ONE_PLAN:
        return _of_plan_meant(text, meant, scene)
    rest = blanked(text, [(start, end) for start, end, _ in plan_spans(text)])
    said = as_budget(rest, counted_in_chips(rest, amounts(rest), study.slice))
    found = [a for a in of_a_chip(rest, said, study.slice) if not _just_stated(a, rest, scene)]
    named = operations_named(rest, study)
    numbered = {mention.start for mention in _references(text, scene, found).mentions if mention.way == "rank"}
    counts = [a for a in found if a.start not in numbered and not _inside(a, rest, named) and not _of_interval(a, rest)]
    change, used = change_in(_without(rest, named), counts, context.change)
    lone = [a for a in found if not a.unit and a not in used and a.value in range(1, 10)]
    near = _matches(text, found, named, lone)
    topic = _topic(text, found, context, near[0].topic if near[0].score >= THRESHOLD else Topic.UNKNOWN)
    perhaps = near[0].topic if near[0].score >= PERHAPS and near[0].topic not in _NEVER_PERHAPS else None
    if context.change is not None and topic not in BARE_NUMBER_TOPICS:
        change, more = varied(change, context.change, [a for a in counts if a not in used], text)
        used += more
    if goes_on(text) and not change.empty:
        change = change_on_top(change, context.change)
    change = real_change(change, study)
    if topic is Topic.TEST_COST and change.hardware is not None:
        topic = Topic.THROUGHPUT
    if change.optimizer == study.experiment.workload.optimizer and not _SWITCHES.search(text):
        change = change.model_copy(update={"optimizer": None})
    if (
        change.remat is not None
        and study.plan is not None
        and change.remat == study.plan.remat
        and _ALREADY.search(text)
    ):
        change = change.model_copy(update={"remat": None})
    bare = topic in BARE_NUMBER_TOPICS or (len(text.split()) <= SHORT_MESSAGE_WORDS and change.empty)
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
    if topic in _FIGURES and context.topic in _OF_A_PLAN and change.empty and not refs.mentions and is_short(text):
        ellipsis = of_before = True
        spoken_of = (scene.focus,) if scene.focus is not None else context.plans
        context = context.model_copy(update={"plans": context.plans or spoken_of})
    if (of_before or (continues and topic is Topic.SEQUENCE_PARALLEL)) and not plans:
        plans = context.plans
    if not named and not plans and (ellipsis or (topic in _ABOUT_OPERATIONS and _IT.search(rest))):
        named = context.operations
    ranks = {mention.start for mention in refs.mentions if mention.way == "rank"}
    unused = tuple(a for a in counts if a not in used and a.start not in ranks and not a.before)
    return Question(
        text, topic, refs, change, plans, named, tuple(found), unused, context, ellipsis, sweep_in(text), perhaps
    )


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


def _matches(text: str, found: Sequence[Amount], named: Sequence[str], lone: Sequence[Amount]) -> list[Match]:
    """The nearest topics; what asks or has a figure says no thanks."""
    near = retrieval().matches(without_interjections(masked(text, found, named, lone)))
    thanks = not is_question(text) and not re.search(r"\d{2}|\d\.\d", text)
    return [one for one in near if one.topic is not Topic.THANKS or thanks]


def _topic(text: str, found: Sequence[Amount], context: Context, topic: Topic) -> Topic:
    """What a text is about: throughput where money or a whole training is named, else what the examples say."""
    if _AGAINST_PREDICTION.search(text):
        return Topic.PREDICTION_CHECK
    if topic in _LOOSE and _QUOTES.search(text) and any(a.unit for a in found):
        return Topic.FALSE_CLAIM
    if any(a.unit == "tokens" and a.value >= _TRAINING for a in found):
        return Topic.THROUGHPUT
    priced = any(a.unit in {"$", "$/node", "chip-hours"} for a in found)
    if priced and context.topic is Topic.TEST_COST and _IT.search(text):
        return Topic.TEST_COST
    return Topic.THROUGHPUT if priced and topic not in _PRICED else topic


def _inside(amount: Amount, text: str, named: Sequence[str]) -> bool:
    """Whether a number is part of an operation's name: all-reduce.70."""
    return any(m.start() <= amount.start < m.end() for n in named for m in re.finditer(loose(n), text, re.I))


def _of_interval(amount: Amount, text: str) -> bool:
    """Whether a number is part of "90 % interval"."""
    return amount.unit == "%" and text[amount.end :].lstrip(" -").lower().startswith(("interval", "confidence"))


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
