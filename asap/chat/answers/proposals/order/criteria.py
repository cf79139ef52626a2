"""The proposals in the order of what was asked for: memory, communication, certainty, risk, time."""

import re
from collections.abc import Callable, Sequence

from asap.chat.answers.phrasing import expectation, fit, list_proposals
from asap.chat.answers.single_plans.figures import prediction_of
from asap.chat.answers.single_plans.whole_plan import whole
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.question import Question
from asap.chat.understanding.topics.topics import Topic
from asap.core.units import counted, format_bytes, format_percent, significant
from asap.prediction.profile_scaling.plan_distance import doublings
from asap.proposals.reasons.explain import confidence
from asap.proposals.selection.candidate import Candidate
from asap.proposals.selection.choice import MEASURABLE

_Value = Callable[[Conversation, Candidate], float | None]
_Criterion = tuple[str, _Value, Callable[[float], str]]
"""Its name, what is compared, least first, and that figure in words; empty where the expectation beside it says it."""


_THOSE = re.compile(r"\b(?:those|these|them|the (?:two|both)|both)\b", re.I)
_WHICH = re.compile(
    r"\b(?:which|who|whichever)\b(?: one| of (?:them|these|those|the (?:two|three)|your \w+)"
    r"|(?: \w+)? (?:proposals?|options?|plans?|picks?|ones?|config\w*|layouts?))"
    r"|\b(?:the )?(?:cheap|saf|light|simpl|easi|small|narrow)(?:er|est)"
    r" (?:one|plan|proposal|option|thing|config\w*|layout|setup)\b"
    r"|\b(?:any|some)thing (?:(?:with|of|that (?:is|has|needs)) )?(?:less|lower|smaller|fewer|more|higher|\w+er)\b"
    r"|^\W*(?:(?:an?|the|any|some|and|is there|got)\W+)*(?:less|least|most|more|low(?:er|est))\s+(?:\w+ )?"
    r"(?:one|proposal|option|plan)\b"
    r"|\bwhat(?:'s| is| are) (?:the|your|our) \w+ (?:proposals?|options?|plans?|config\w*|layouts?)\b",
    re.I,
)
_MOST = re.compile(
    r"\b(?:most|least|lowest|highest|smallest|largest|biggest|fewest|narrowest|greatest|best|less|more|lower|higher"
    r"|fewer|(?:cheap|saf|light|small|risk)\w*)\b",
    re.I,
)
_COMPARATIVE = re.compile(
    r"\b(?:saf|risk|cheap|light|simpl|easi|scar)\w*er\b"
    r"|\b(?:less|more|least|most) (?:risk\w*|scary|certain|uncertain|exotic|invasive|likely)\b"
    r"|\b(?:less|least|smaller|fewer|fewest) (?:(?:code|config\w*|of a) )?(?:changes?|work|effort)\b",
    re.I,
)
"""Says how a proposal compares with the others: "3 looks safer, no?"."""
_EITHER = re.compile(r"\b#?[1-3] or (?:proposal )?#?[1-3]\b", re.I)
"""One of two proposals is to be chosen."""
_AIM = re.compile(
    r"\b(?:minimi[sz]|maximi[sz])\w*|\boptimi[sz]\w+ for\b|\bobjective\b"
    r"|\bcares? (?:only |more |mostly )?(?:about|for)\b|\b(?:sort|rank|order)\w* (?:them |the \w+ |those )?by\b",
    re.I,
)
"""Words before what plans are to be chosen by."""
_IRRELEVANT = re.compile(
    r"\b(?:do(?:es)?(?: not|n'?t)|never|not)\s+(?:really\s+|much\s+)?(?:care|worry|mind|bother)\w*"
    r"(?:\s+(?:about|for|with|if))?(?:\s+(?:the|our|any))?\s+[\w-]+"
    r"|\b(?:regardless of|never mind|ignor(?:e|ing)|forget(?:ting)?(?: about)?|whatever)\s+(?:the\s+)?[\w-]+"
    r"|\b[\w-]+\s+(?:does(?: not|n'?t)|doesnt|is not|isn't|won't)\s+(?:matter|count|an? (?:issue|problem|concern))",
    re.I,
)
"""What is not to count: "don't care about memory"."""
_FASTEST = re.compile(r"\b(?:fastest|quickest|shortest|speed|fast)\b", re.I)
_OF_OTHERS = {
    Topic.FIRST, Topic.SINGLE_CHANGES, Topic.OPERATIONS, Topic.COLLECTIVES, Topic.WHAT_IF, Topic.MAXTEXT, Topic.LARGEST,
    Topic.FITTING, Topic.CAPTURE, Topic.BOTTLENECK, Topic.TARGET,
}  # fmt: skip
"""Topics of a question that chooses among other things than plans, or by all figures."""


def asks_choice(question: Question) -> bool:
    """Whether it asks which of several plans has the most or the least of something that can be compared, or says
    what is to count."""
    text = question.text
    chooses = (_WHICH.search(text) is not None and _MOST.search(text) is not None) or _AIM.search(text) is not None
    compares = len(question.plans) > 1 and re.search(_COST, text, re.I) is not None
    compares = compares or (bool(question.refs.ranked) and _COMPARATIVE.search(text) is not None)
    compares = compares or (len(question.refs.ranked) > 1 and _EITHER.search(text) is not None)
    if _IRRELEVANT.search(text) and _FASTEST.search(text) and question.change.empty:
        return True
    return (
        (chooses or compares) and question.topic not in _OF_OTHERS and question.change.empty and bool(_criteria(text))
    )


_GOES_ON = re.compile(
    r"^\W*(?:(?:and|now|ok|then|or|so)\W+)*(?:by|for|on|in terms of)\s+(?:the\s+)?[\w ]{2,20}\W*$", re.I
)


def goes_on_ranking(question: Question) -> bool:
    """Whether it names another criterion and no more, after plans were ranked by one: "by mem"."""
    after = question.context.topic is Topic.RANK_BY and _GOES_ON.match(question.text) is not None
    return after and bool(_criteria(question.text)) and not question.refs.mentions and question.change.empty


def chooses_of_two(question: Question) -> bool:
    """Whether it chooses one of two numbered proposals by what it names: "1 or 3 if i fear an oom"."""
    return _EITHER.search(question.text) is not None and asks_choice(question)


def rank_by(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """The plans that a question names or that were spoken of together, else the proposals, by what was asked for."""
    of = _compared(conversation, question)
    if not of:
        list_proposals(conversation, answer)
        return
    criteria = _criteria(question.text) or _criteria(question.context.criterion or "") or [_SHORTEST]
    name, known, write = next(
        ((name, known, write) for name, value, write in criteria if (known := _known(conversation, of, value))),
        (criteria[0][0], [], str),
    )
    if not known:
        answer.add(f"The {name} of the proposals cannot be predicted here; this is what is known:")
        list_proposals(conversation, answer)
        return
    least, first = known[0]
    answer.focus = of[first].plan
    level = [
        _title(conversation, of[place]) for amount, place in known[1:] if amount - least <= MEASURABLE * abs(least)
    ]
    beside = f", level with {' and '.join(level)}" if level else ""
    first_title = _title(conversation, of[first])
    leads = first_title if first_title == str(answer.focus) else f"{first_title} ({answer.focus})"
    answer.add(f"{leads} has the {name} of the {len(of)}{beside}:")
    for amount, place in known:
        prediction, own = of[place].prediction, _title(conversation, of[place])
        figure = f"{said}; " if (said := write(amount)) else ""
        plan = f", {prediction.plan}" if own != str(prediction.plan) else ""
        if prediction.plan == conversation.study.plan:
            prediction = prediction.model_copy(update={"relative_step_time": None})
        answer.add(f"- {own}{plan}: {figure}{expectation(prediction)}{fit(prediction)}")
    if (price := question.dollars_named) and write is _for_tokens:
        answer.add(f"At ${price:g} a chip-hour, the first takes ${significant(least * price)} for a billion tokens.")
    answer.add(f"The ranking itself stays: {', '.join(str(plan) for plan in conversation.order)}.")


def names_criterion(text: str) -> bool:
    """Whether it names a figure that plans can be compared by."""
    return bool(_criteria(text))


def _criteria(text: str) -> list[_Criterion]:
    """What a text names to compare by, in its order; what it does not care for is none of it."""
    text = _IRRELEVANT.sub(" ", text)
    named = [(found.start(), criterion) for words, criterion in _CRITERIA if (found := re.search(words, text, re.I))]
    if _FEARED.search(text):
        named = [one for one in named if one[1] is not _LEAST_TO_LOSE] or named
    return [criterion for _, criterion in sorted(named, key=lambda one: one[0])]


def _compared(conversation: Conversation, question: Question) -> Sequence[Candidate]:
    """Two plans or more that are named, or that the question before was of; else the proposals."""
    spoken_of = question.context.plans if _THOSE.search(question.text) else ()
    named = next((plans for plans in (question.plans, spoken_of) if len(plans) > 1), ())
    full = [whole(conversation, plan) for plan in named]
    if not full and len(conversation.proposals) == 1 and conversation.study.plan is not None:
        full = [conversation.study.plan, conversation.proposals[0].plan]
    return [Candidate(prediction_of(conversation, plan), 0.0) for plan in full] or conversation.proposals


def _title(conversation: Conversation, candidate: Candidate) -> str:
    order = conversation.order
    if candidate.plan == conversation.study.plan:
        return "what runs now"
    return f"proposal {order.index(candidate.plan) + 1}" if candidate.plan in order else str(candidate.plan)


def _known(conversation: Conversation, of: Sequence[Candidate], value: _Value) -> list[tuple[float, int]]:
    """What a criterion compares of each plan where it is known, least first, and the place of the plan."""
    found = [(value(conversation, candidate), place) for place, candidate in enumerate(of)]
    return sorted((amount, place) for amount, place in found if amount is not None)


def _hbm(conversation: Conversation, candidate: Candidate) -> float | None:
    memory = candidate.prediction.memory
    return memory.total.value if memory else None


def _communication(conversation: Conversation, candidate: Candidate) -> float | None:
    sent = candidate.prediction.communication
    return sent.value if sent else None


def _step(conversation: Conversation, candidate: Candidate) -> float | None:
    quantity = candidate.prediction.relative_step_time or candidate.prediction.step_time
    return quantity.value if quantity else None


def _chip_hours(conversation: Conversation, candidate: Candidate) -> float | None:
    """For a billion tokens."""
    rate, hardware = candidate.prediction.tokens_per_second, conversation.study.slice
    return hardware.chips / rate.value * 1e9 / 3600 if rate and hardware else None


def _rate(conversation: Conversation, candidate: Candidate) -> float | None:
    """Negative, so that the most comes first."""
    rate = candidate.prediction.tokens_per_second
    return -rate.value if rate else None


def _in_tokens(negative_rate: float) -> str:
    return f"{significant(-negative_rate, 4)} tokens/s"


def _for_tokens(chip_hours: float) -> str:
    return f"{significant(chip_hours)} chip-hours for a billion tokens"


def _width(conversation: Conversation, candidate: Candidate) -> float | None:
    quantity = candidate.prediction.relative_step_time or candidate.prediction.step_time
    if quantity is None or quantity.low is None or quantity.high is None:
        return None
    return quantity.high - quantity.low


def _distance(conversation: Conversation, candidate: Candidate) -> float | None:
    plan = conversation.study.plan
    return float(doublings(candidate.plan, plan)) if plan is not None else None


def _worst(conversation: Conversation, candidate: Candidate) -> float | None:
    """The slow end of the interval."""
    quantity = candidate.prediction.relative_step_time or candidate.prediction.step_time
    return quantity.high if quantity else None


def _odds(conversation: Conversation, candidate: Candidate) -> float | None:
    chance = confidence(conversation.study, candidate.prediction, ()).faster
    return -chance.value if chance else None


_SHORTEST: _Criterion = ("shortest step", _step, lambda value: "")
_LEAST_TO_LOSE: _Criterion = ("least to lose, by the slow end of its interval", _worst, lambda value: "")
_FEARED = re.compile(
    r"\b(?:scared|afraid|worried|worry|risk\w*|fear\w*|safe\w*)(?: \w+){0,2} (?:oom\w*|memory|hbm|comm\w*)", re.I
)
"""Says what is feared, which is what counts then."""
_COST = r"\b(?:cheap\w*|cost\w*|money|price\w*|expens\w+|dollars?|budget|(?:chip|gpu|tpu|device)[- ]hours?)\b"
_CRITERIA: tuple[tuple[str, _Criterion], ...] = (
    (r"\b(?:memory|hbm|headroom|footprint|oom|vram)\b", ("lowest HBM use", _hbm, format_bytes)),
    (
        r"\b(?:communicat\w*|collectives?|data between|traffic|network|moves?)\b",
        ("least communication", _communication, format_percent),
    ),
    (r"\b(?:interval|narrow\w*|uncertain\w*)\b", ("narrowest interval", _width, lambda value: f"width {value:.2f}")),
    (
        r"\b(?:chance|probab\w*|likely|odds|p\(faster\))\b",
        ("highest probability of being faster", _odds, lambda value: f"{format_percent(-value, 0)}"),
    ),
    (
        r"\b(?:risk\w*|scar(?:y|ier|iest)|saf(?:e|er|est)|worst|downside|regress\w*|lose|wrong|gamble)\b",
        _LEAST_TO_LOSE,
    ),
    (
        r"\b(?:close\w*|easi\w*|exotic|invasive|work|effort|simpl\w*|changes?|distance|smallest)\b",
        ("smallest distance from what runs", _distance, lambda value: counted(value, "doubling")),
    ),
    (_COST, ("lowest cost per token", _chip_hours, _for_tokens)),
    (r"\b(?:tokens?|tps|throughput)\b", ("highest throughput", _rate, _in_tokens)),
    (_COST, ("lowest cost per token (on the same chips: the shortest step)", _step, lambda value: "")),
)  # fmt: skip
