"""``reply``: a message in, an answer of the engine out. The order of the proposals moves for evidence alone."""

from asap.agents.chat import plan_answers, ranking_answers, run_answers
from asap.agents.chat.conversation import Conversation
from asap.agents.chat.evidence import Claim, Evidence, current_step_time
from asap.agents.chat.reading import direction, numbers_mentioned, plans_mentioned, plans_written
from asap.agents.chat.reply import Draft, Reply
from asap.agents.chat.testimony import Testimony, hear
from asap.agents.chat.topics import Topic, is_question, topics
from asap.agents.chat.what_if import is_change, what_if
from asap.agents.chat.wording import list_standing, missing
from asap.core.errors import AsapError, InsufficientEvidenceError
from asap.core.text import plain, redact
from asap.plans import Plan

LONGEST_MESSAGE = 4000
BARE = {Topic.COMPARE, Topic.EXPLAIN, Topic.MAXTEXT, Topic.SURE, Topic.WHY_NOT}
"""Topics in which a lone digit is the number of a proposal."""

FEW_WORDS = 3
"""In a message so short, a lone digit is one as well: "and 2?"."""


def reply(conversation: Conversation, text: str) -> Reply:
    """Answer one message; evidence in it is taken into the conversation. Raises nothing of ASAP's own."""
    said = "\n".join(plain(redact(line)) for line in text[:LONGEST_MESSAGE].replace("’", "'").splitlines())
    before = _order(conversation)
    answer, taken = Draft(Topic.UNKNOWN), ()
    try:
        heard = _hear(conversation, said)
        new = tuple(item for item in heard.evidence if item not in conversation.evidence)
        conversation.take(new)
        taken = new
        if heard.evidence or heard.complaints:
            _take_in(conversation, answer, heard, new, before)
        else:
            _answer(conversation, answer, said, heard.supposed)
    except InsufficientEvidenceError as error:
        missing(conversation, error, answer)
    except AsapError as error:
        answer.say(f"{plain(error)}. Nothing has changed.")
    conversation.focus = answer.focus or conversation.focus
    after = _order(conversation)
    return Reply(
        topic=answer.topic,
        text=answer.text,
        facts=tuple(answer.facts),
        evidence=taken,
        changed=before != after,
        ranking=tuple(map(str, after)),
        focus=conversation.focus,
    )


def _order(conversation: Conversation) -> list[Plan]:
    return [candidate.plan for candidate in conversation.standing]


def _hear(conversation: Conversation, text: str) -> Testimony:
    order = _order(conversation)
    return hear(text, conversation.study, order, conversation.focus or (order[0] if order else None))


def _take_in(
    conversation: Conversation, answer: Draft, heard: Testimony, new: tuple[Evidence, ...], before: list[Plan]
) -> None:
    answer.topic = Topic.EVIDENCE
    answer.say(*heard.complaints)
    answer.say(*(f"On record already: {item}." for item in heard.evidence if item not in new))
    answer.say(*(f"Recorded as evidence: {item} ({item.origin})." for item in new))
    answer.say(*filter(None, (_caveat(conversation, item) for item in new)))
    after = _order(conversation)
    reason = "; ".join(map(str, new))
    if before != after:
        answer.say(f"It changes the order, by this evidence alone: {reason}.")
        answer.say(f"Before: {', '.join(map(str, before)) or 'nothing could be ranked'}. Now:")
    elif new:
        answer.say("I have evaluated everything again with it, and the order stays:")
    else:
        answer.say("Nothing has changed. The order:")
    plans = [item.plan for item in new if item.plan is not None]
    answer.focus = plans[-1] if plans else None
    list_standing(conversation, answer)


def _caveat(conversation: Conversation, item: Evidence) -> str | None:
    """What keeps a fact from being weighed, or what it contradicts."""
    recorded = conversation.opened.experiment.workload
    earlier = {Claim.BATCH: recorded.global_batch, Claim.SEQUENCE: recorded.sequence_length}.get(item.claim)
    if earlier is not None and earlier != item.value:
        return f"The record of the run says {earlier}; your word stands over it in this session."
    if item.claim is Claim.STEP_TIME and current_step_time(conversation.study, conversation.evidence) is None:
        return "It cannot be compared yet: how long a step takes now is not known."
    if item.claim is Claim.FASTER:
        return 'By how much? A figure can be weighed: "proposal 1 measured 2.1 s".'
    return None


def _answer(conversation: Conversation, answer: Draft, text: str, supposed: tuple[Evidence, ...]) -> None:
    """Answer a message without evidence: on plans by the engine, on anything else by what its words ask for."""
    asked = topics(text)
    written = [plan for plan in plans_written(text) if plan.devices > 1]
    plans = _plans(conversation, text, asked)
    if _said_beforehand(conversation, answer, text, asked, plans):
        return
    if not written and is_change(text):
        answer.topic = Topic.WHAT_IF
        what_if(conversation, answer, text)
    elif any(item.plan is not None for item in supposed):
        answer.topic = Topic.WHAT_IF
        ranking_answers.suppose(conversation, answer, supposed)
    elif Topic.OPINION in asked and not is_question(text):
        answer.topic = Topic.OPINION
        _opinion(conversation, answer, text, written)
    elif Topic.PRINCIPLE in asked and not written:
        answer.topic = Topic.PRINCIPLE
        run_answers.principle(conversation, answer, text)
    elif Topic.RUN in asked and all(plan == conversation.study.plan for plan in plans):
        answer.topic = Topic.RUN
        run_answers.run(conversation, answer)
    elif Topic.SURE in asked and all(conversation.candidate(plan) for plan in plans):
        answer.topic = Topic.SURE
        ranking_answers.sure(conversation, answer, plans)
    elif plans or direction(text):
        _on_plans(conversation, answer, text, asked, plans)
    else:
        _on_topic(conversation, answer, asked)


def _said_beforehand(
    conversation: Conversation, answer: Draft, text: str, asked: set[Topic], plans: list[Plan]
) -> bool:
    """What is asked for in so many words, whatever else is in the message."""
    missing_rank = [n for n in numbers_mentioned(text, 0, False) if n > len(conversation.standing)]
    if missing_rank and not plans:
        answer.topic = Topic.PROPOSALS
        answer.say(f"There is no proposal {missing_rank[0]}. These are:")
        ranking_answers.proposals(conversation, answer)
    elif Topic.MAXTEXT in asked and (lead := _lead(conversation, plans)):
        answer.topic = Topic.MAXTEXT
        plan_answers.maxtext(conversation, answer, lead)
    elif topic := next((topic for topic in _OUTRIGHT if topic in asked), None):
        answer.topic = topic
        _PLAIN[topic](conversation, answer)
    else:
        return False
    return True


def _opinion(conversation: Conversation, answer: Draft, text: str, written: list[Plan]) -> None:
    plans = written or plan_answers.towards(conversation, text)
    if not plans:
        ranking_answers.unmoved(conversation, answer)
        return
    for plan in plans:
        plan_answers.why_not(conversation, answer, plan)
    ranking_answers.stays(conversation, answer)


def _on_plans(conversation: Conversation, answer: Draft, text: str, asked: set[Topic], plans: list[Plan]) -> None:
    if len(plans) == 1 and Topic.COMPARE in asked:
        plans = list(dict.fromkeys([*plans, *filter(None, [_lead(conversation, [])])]))
    if len(plans) > 1:
        answer.topic = Topic.COMPARE
        plan_answers.compare(conversation, answer, plans)
    elif plans and not plans_written(text) and not asked & {Topic.WHY_NOT, Topic.OPINION}:
        answer.topic = Topic.EXPLAIN
        if Topic.EXPLAIN in asked or is_question(text) or len(text.split()) <= FEW_WORDS:
            plan_answers.explain(conversation, answer, plans[0])
        else:
            answer.topic = Topic.OPINION
            ranking_answers.unmoved(conversation, answer)
    else:
        answer.topic = Topic.WHY_NOT
        for plan in plans or plan_answers.towards(conversation, text):
            plan_answers.why_not(conversation, answer, plan)
        if not answer.lines:
            plan_answers.no_way(conversation, answer, text)


def _on_topic(conversation: Conversation, answer: Draft, asked: set[Topic]) -> None:
    answer.topic = next((topic for topic in _PLAIN if topic in asked), Topic.UNKNOWN)
    lead = _lead(conversation, [])
    if answer.topic in {Topic.UNKNOWN, Topic.OPINION, Topic.HELP} and Topic.EXPLAIN in asked and lead:
        answer.topic = Topic.EXPLAIN
        plan_answers.explain(conversation, answer, lead)
        return
    _PLAIN.get(answer.topic, run_answers.unknown)(conversation, answer)


def _plans(conversation: Conversation, text: str, asked: set[Topic]) -> list[Plan]:
    """Plans that a message names; one that it only points at counts if nothing else is asked for."""
    bare = bool(asked & BARE) or len(text.split()) <= FEW_WORDS
    focus = conversation.focus if asked <= {*BARE, Topic.UNKNOWN} else None
    order = _order(conversation)
    found = plans_mentioned(text, order, focus, conversation.study.plan, bare)
    return [plan for plan in found if plan.devices > 1]


def _lead(conversation: Conversation, plans: list[Plan]) -> Plan | None:
    """The plan that is named, else the one that was spoken of, else the first."""
    order = _order(conversation)
    return next(iter([*plans, *([conversation.focus] if conversation.focus else []), *order]), None)


_OUTRIGHT = (Topic.THANKS, Topic.GREETING, Topic.CHANGE_OF_MIND, Topic.CAPTURE)
_PLAIN = {
    Topic.THANKS: run_answers.thanks,
    Topic.GREETING: run_answers.help,
    Topic.CHANGE_OF_MIND: ranking_answers.change_of_mind,
    Topic.CAPTURE: run_answers.capture,
    Topic.EVIDENCE: ranking_answers.evidence,
    Topic.SOURCES: run_answers.sources,
    Topic.BOTTLENECK: run_answers.bottleneck,
    Topic.PRECEDENT: run_answers.precedents,
    Topic.FIRST: ranking_answers.first,
    Topic.OPINION: ranking_answers.unmoved,
    Topic.PROPOSALS: ranking_answers.proposals,
    Topic.MAXTEXT: ranking_answers.proposals,
    Topic.HELP: run_answers.help,
}
