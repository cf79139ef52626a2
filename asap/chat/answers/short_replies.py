"""Answers to what only what was said before gives a meaning: "ok", "go with 2", "why not?", "slower by how much?"."""

import re

from asap.chat.answers.form import Form
from asap.chat.answers.other_runs.back_to_run import back_to_run
from asap.chat.answers.phrasing import expectation, fit, line
from asap.chat.answers.proposals.order import ranking, verdicts
from asap.chat.answers.proposals.order.passed_over import asks_others, others_than, passed_over
from asap.chat.answers.proposals.testing.next_test import what_to_test
from asap.chat.answers.single_plans import plans as plan_answers
from asap.chat.answers.single_plans.figures import prediction_of
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.quantities.changes import Change
from asap.chat.understanding.question import Question
from asap.chat.understanding.topics.topics import Topic
from asap.chat.understanding.words.line_before.going_back import goes_back
from asap.chat.understanding.words.questions import is_question
from asap.core.units import format_percent
from asap.diagnosis.facts import STEP_TIME_VARIATION
from asap.plans import Plan
from asap.prediction.prediction import Prediction
from asap.proposals.selection.candidate import Candidate

_YES = (
    r"(?:ok(?:ay)?|k|kk|yes|yep|yeah|yup|y|sure|right|true|agreed?|fair(?: enough| point)?"
    r"|(?:that |it )?makes sense|got it|i see|understood|understand|cool|good|great|nice|perfect|fine|al?right|noted"
    r"|sounds (?:good|right|fair|reasonable)|will do|works for me|(?:good|nice) one|no problem"
    r"|thanks|thank you|thx|ty|cheers)"
)
_ASSENT = re.compile(rf"^\W*(?:(?:ah|oh|hm+|well|so)\W+)*{_YES}(?:\W+(?:then|please|{_YES}))*\W*$", re.I)
_DENIAL = re.compile(r"^\W*(?:no|nope|nah|n|neither|none)(?:\W+(?:no|nope|thanks))*\W*$", re.I)
_THANKS = re.compile(r"\b(?:thanks|thank you|thx|ty|cheers)\b", re.I)
_DECIDED = re.compile(
    rf"^\W*(?:(?:{_YES}|so|then|and|(?:that|it)(?: is|'s))\W+)*"
    r"(?:(?:i'?ll|we'?ll|(?:i|we) will|let'?s|let us|i'?m going to|we'?re going to"
    r"|going to|gonna)\s+)?(?:just\s+)?"
    r"(?:go(?:ing)?(?: ahead)? (?:with|for)|tak(?:e|ing)|us(?:e|ing)|pick(?:ing)?|do(?:ing)?|settle on|launch(?:ing)?"
    r"|(?=(?:proposal|option|number|#)?\s*\d\W*(?:then|it is)))\s*(?P<what>.*)$",
    re.I,
)
_RESOLVED = re.compile(
    rf"^\W*(?:{_YES}\b|i'?ll|we'?ll|let'?s|(?:i|we) will|going|gonna|(?:i|we)'?(?:m|re) going|so\b|then\b)"
    r"|\bthen\W*$|\bit is\W*$",
    re.I,
)
"""Says that it is settled, and does not order the engine to choose."""
_LONGEST = 9
"""Words of a decision; more say something else beside it."""
_WHY_NOT = re.compile(r"^\W*(?:(?:and|but|ok|so|hm+|oh|well)\W+)*why not(?: (?:that|it|this)(?: one)?)?\W*$", re.I)
_COSTS_TIME = re.compile(
    r"\bcosts?(?: me| us)? how many (?:ms|s|secs?|(?:milli)?seconds)\b"
    r"|\bhow (?:much|many \w+) (?:time )?(?:would|does|do|will|did) (?:proposal )?#?[1-3] (?:bring|save|gain|give"
    r"|buy|cut|shave|win)\b"
    r"(?![^?]*[$€])",
    re.I,
)
_AGAINST_NOW = re.compile(
    r"\b(?:faster|slower|quicker|better|worse|longer|shorter)\b[^.?!]*\b(?:than (?:what|now|ours|us|today|before|the"
    r" current|the baseline|we)|by how much|how much)\b"
    rf"|{_COSTS_TIME.pattern}"
    r"|\b(?:by )?how much\b[^.?!]*\b(?:faster|slower|quicker|better|worse|longer|shorter)\b"
    r"|^\W*(?:(?:so|and|but|is|isn't|ok)\W+)*(?:proposal |option |#)?[1-3] (?:is |isn't |really |even |any )*"
    r"(?P<claim>faster|slower|quicker|longer|shorter)\W*(?:right|correct|no|yes|true|is it|isn't it|then)?\W*$",
    re.I,
)
_CLAIMS_SHORTER = re.compile(r"\b(?:faster|quicker|shorter)\b", re.I)
_SMALL = re.compile(
    r"\b(?:only|just|merely|meh|nothing|tiny|peanuts|hardly|barely|not (?:much|a lot|great|worth)|that'?s (?:it|all)"
    r"|is that (?:it|all)|(?:so|too) (?:little|small)|bother\w*|underwhelming|disappointing)\b",
    re.I,
)
_FEW = 8
"""Words of a remark on a figure."""


def _acknowledged(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    if question.context.topic is Topic.UNKNOWN and not _THANKS.search(question.text):
        answer.add("I had not understood what came before, so I do not know what that agrees to. Ask it in full.")
        return
    current = conversation.proposals
    answer.add("Nothing was asked or stated, so nothing has changed.")
    if current:
        answer.add(f"Next: test proposal 1, {current[0].plan}. State what it measures, and it is used.")


def _denied(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    answer.add(
        "No to what? Nothing has changed. Say what is wrong, as a figure that you measured or as a fact of the run."
    )


def _decided_on(conversation: Conversation, question: Question) -> Plan | None:
    """The plan that is settled on: by its number, written out, or the one that was spoken of.

    Nobody settles on what runs already: "it" is the first proposal then.
    """
    found, text = _DECIDED.match(question.text), question.text
    if found is None or len(text.split()) > _LONGEST or is_question(text) or not _RESOLVED.search(text):
        return None
    named = question.refs.plans
    own = question.change != (question.context.change or Change())
    if len(named) > 1 or (own and not question.change.empty):
        return None
    if named[:1] == [conversation.study.plan]:
        named = conversation.order
    return named[0] if named else None


def _decided(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    plan = _decided_on(conversation, question)
    if plan is None:
        return
    order = conversation.order
    plan_answers.maxtext(conversation, answer, plan)
    if answer.focus in order[1:]:
        rank = order.index(answer.focus) + 1
        answer.add(f"A choice is no fact: the order stays, with {order[0]} first and this as proposal {rank}.")
    answer.add(f'Once it ran, say what came of it: "{answer.focus} measured … s", or "… ran out of memory".')


def _why_not_that(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """Why the plan that was spoken of last is not first; of a changed run or of none, it is asked what is meant."""
    focus = conversation.focus
    changed = question.context.change is not None and bool(question.context.change.counts)
    if focus is None or changed or focus in (conversation.study.plan, *conversation.order[:1]):
        answer.add('Why not what? Name the plan, as in "why not model=8?" or "why not proposal 2?".')
        return
    plan_answers.why_not(conversation, answer, focus)


def _other_than_now(conversation: Conversation, question: Question) -> Plan | None:
    """The plan that is compared with what runs now: the one that is named, else the one that was spoken of."""
    now = conversation.study.plan
    named = [plan for plan in question.plans if plan != now]
    found = _AGAINST_NOW.search(question.text)
    if len(named) == 1 and (_COSTS_TIME.search(question.text) or (found is not None and found["claim"])):
        return named[0]
    if named or not question.change.empty or question.refs.wish is not None or now is None:
        return None
    return conversation.focus if conversation.focus != now else None


def _against_now(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    plan = _other_than_now(conversation, question)
    if plan is None:
        return
    prediction = prediction_of(conversation, plan)
    answer.focus = plan
    found = conversation.candidate(plan)
    said = line(conversation, found[1]) if found else f"{plan}: {expectation(prediction)}{fit(prediction)}"
    claims = _AGAINST_NOW.search(question.text)
    verdict = _verdict(prediction, claims["claim"]) if claims is not None and claims["claim"] else ""
    answer.add(f"{verdict}Against what runs now, {conversation.study.plan}:", said)
    answer.add_figure(f"{plan}: step time", prediction.relative_step_time or prediction.step_time)


def _verdict(prediction: Prediction, claim: str) -> str:
    """Whether a step is longer or shorter than that of now, by more than steps vary."""
    relative = prediction.relative_step_time
    if relative is None:
        return ""
    if abs(relative.value - 1) < STEP_TIME_VARIATION:
        return f"Neither, within the {format_percent(STEP_TIME_VARIATION, 0)} by which steps vary. "
    return "Yes. " if (relative.value < 1) == bool(_CLAIMS_SHORTER.fullmatch(claim)) else "No. "


def _quoted_gain(conversation: Conversation, question: Question) -> Candidate | None:
    """The proposal whose change of the step is quoted: "only 3.8 %?"."""
    said = {f"{abs(amount.value):.1f}" for amount in question.amounts if amount.unit == "%"}
    for candidate in conversation.proposals:
        relative = candidate.prediction.relative_step_time
        if relative is not None and f"{abs(relative.value - 1) * 100:.1f}" in said:
            return candidate
    return None


def _belittles(conversation: Conversation, question: Question) -> bool:
    short = len(question.text.split()) <= _FEW and not question.refs.plans
    return short and _SMALL.search(question.text) is not None and _quoted_gain(conversation, question) is not None


def _worth(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    candidate = _quoted_gain(conversation, question)
    verdicts.worth_it(conversation, answer, [candidate.plan] if candidate else [])


_GAP = re.compile(r"\b(?:diff(?:er\w*)?|gap|lead|margin|distance)\b", re.I)
_MATTERS = re.compile(
    r"\b(?:cares?|negligible|tiny|nothing|peanuts|noise|noisy|significan\w*|real|matters?|measur\w+|meaningful|within)\b",
    re.I,
)


def _gap_of_two(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    plan_answers.compare(conversation, answer, list(question.context.plans))


_GRID = re.compile(r"(?<![\w=])\d+(?:\s?[x×]\s?\d+)+(?![\w=])", re.I)
_BESIDE_GRID = 4
"""Words beside a grid that leave open of what it is."""


def _lone_grid(question: Question) -> str | None:
    """Degrees without their axes: "what about 16x16x2"."""
    found = _GRID.search(question.text)
    named = question.refs.plans or question.refs.wish or not question.change.empty
    beside = len(question.text.split()) - 1
    return found.group() if found and not named and beside <= _BESIDE_GRID else None


def _which_axes(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    answer.add(f'Of which axes is {_lone_grid(question)}? Name them, as in "data=16 model=4" or "fsdp 16 tp 4".')
    if conversation.study.plan is not None:
        answer.add(f"now: {conversation.study.plan}")


_WHAT_NOW = re.compile(
    r"^\W*(?:(?:ok(?:ay)?|and|so|well|right|fine|hm+|alright)\W+)*(?:so then|then what|now what|what now|what then"
    r"|so what (?:now|then|next)|what(?:'s| is)? next|next steps?"
    r"|(?:any |some )?(?:ideas?|thoughts?|suggestions?|hints?|advice))\W*$",
    re.I,
)
"""Asks what follows from all that was said."""

SHORT_REPLIES: tuple[Form, ...] = (
    Form(lambda c, q: _ASSENT.match(q.text) is not None, _acknowledged, Topic.THANKS),
    Form(lambda c, q: _DENIAL.match(q.text) is not None, _denied, Topic.UNKNOWN),
    Form(lambda c, q: _WHAT_NOW.match(q.text) is not None, lambda c, a, q: what_to_test(c, a), Topic.FIRST),
    Form(lambda c, q: goes_back(q.text), back_to_run, Topic.PROPOSALS),
    Form(lambda c, q: passed_over(q) is not None, others_than, Topic.PROPOSALS),
    Form(lambda c, q: asks_others(q), lambda c, a, q: ranking.proposals(c, a), Topic.PROPOSALS),
    Form(lambda c, q: _decided_on(c, q) is not None, _decided, Topic.MAXTEXT),
    Form(lambda c, q: _WHY_NOT.match(q.text) is not None, _why_not_that, Topic.WHY_NOT),
    Form(lambda c, q: _belittles(c, q), _worth, Topic.WORTH_IT),
    Form(lambda c, q: _lone_grid(q) is not None, _which_axes, Topic.UNKNOWN),
    Form(
        lambda c, q: _AGAINST_NOW.search(q.text) is not None and _other_than_now(c, q) is not None,
        _against_now,
        Topic.COMPARE,
    ),
    Form(
        lambda c, q: (
            q.context.topic is Topic.COMPARE
            and len(q.context.plans) > 1
            and _GAP.search(q.text) is not None
            and _MATTERS.search(q.text) is not None
        ),
        _gap_of_two,
        Topic.COMPARE,
    ),
)
