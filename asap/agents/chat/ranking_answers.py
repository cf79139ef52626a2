"""Answers on the order of the proposals: which first, how sure, an opinion, what would change it."""

import math
from collections.abc import Sequence

from asap.agents.chat.conversation import Conversation
from asap.agents.chat.evidence import Evidence, current_step_time
from asap.agents.chat.reply import Draft
from asap.agents.chat.wording import drafted, foundations, line, list_standing, on_record, seconds
from asap.core.units import format_percent
from asap.diagnosis.rules import NOISE
from asap.plans import Plan
from asap.proposals.propose import recommend
from asap.proposals.ranking import Candidate


def proposals(conversation: Conversation, answer: Draft) -> None:
    """The proposals as they stand."""
    if conversation.study.plan is not None:
        answer.say(f"now: {conversation.study.plan}")
    list_standing(conversation, answer)


def first(conversation: Conversation, answer: Draft) -> None:
    """Which one to start with, and why it and not the next."""
    standing = conversation.standing
    if not standing:
        list_standing(conversation, answer)
        return
    best = standing[0]
    answer.focus = best.plan
    proposal = drafted(conversation, best, 1)
    answer.say(recommend((proposal,), 1).statement, line(conversation, best, 1))
    answer.rest_on("step time over what runs now", best.prediction.relative_step_time)
    answer.say(*(f"+ {reason}" for reason in proposal.reasoning))
    answer.say(*(f"- {cost}" for cost in proposal.trade_offs))
    answer.say(*(f"§ {citation.supports} [{citation.id}]" for citation in proposal.citations))
    answer.say(*(_behind(conversation, best, other, rank) for rank, other in enumerate(standing[1:], 2)))


def sure(conversation: Conversation, answer: Draft, plans: list[Plan]) -> None:
    """How sure, and on what that rests; nothing changes by the question."""
    standing = conversation.standing
    if not standing:
        list_standing(conversation, answer)
        return
    chosen = conversation.candidate(plans[0]) if plans else None
    candidate = chosen[1] if chosen else standing[0]
    rank = next((n for n, other in enumerate(standing, 1) if other.plan == candidate.plan), None)
    answer.focus = candidate.plan
    answer.say(f"As sure as this, and no surer: {line(conversation, candidate)}. It rests on")
    foundations(conversation, candidate, answer)
    place = f"proposal {rank}" if rank else "where it is"
    answer.say(f"The question brings no new fact, so {candidate.plan} stays {place}.")


def unmoved(conversation: Conversation, answer: Draft) -> None:
    """An opinion without evidence: the order stands, and this is what would move it."""
    standing = conversation.standing
    answer.say("I hear that you see it differently. What you say holds no measurement and no new fact about this run,")
    answer.say("so the order stays, because it rests on the engine's figures:")
    list_standing(conversation, answer)
    if standing:
        answer.focus = standing[0].plan
        answer.say(f"What the first, {standing[0].plan}, rests on:")
        foundations(conversation, standing[0], answer)
        answer.say(*_thresholds(conversation))


def stays(conversation: Conversation, answer: Draft) -> None:
    """The order after an opinion about a plan that the engine has just evaluated."""
    order = ", ".join(str(candidate.plan) for candidate in conversation.standing)
    answer.say(f"That is the engine's expectation. Without a measurement or a new fact the order stays: {order}.")


def suppose(conversation: Conversation, answer: Draft, supposed: Sequence[Evidence]) -> None:
    """The order under facts that are only supposed; nothing is recorded."""
    now = [candidate.plan for candidate in conversation.standing]
    imagined = conversation.with_evidence(supposed)
    answer.say(f"Supposing that {'; '.join(map(str, supposed))}:")
    list_standing(imagined, answer)
    then = [candidate.plan for candidate in imagined.standing]
    answer.say(
        "The order would be the same." if now == then else f"Until it is a fact, it stays {', '.join(map(str, now))}."
    )


def change_of_mind(conversation: Conversation, answer: Draft) -> None:
    """The facts that would turn the order, with the figures at which they do."""
    list_standing(conversation, answer)
    answer.say("This would change the order:")
    answer.say(*_thresholds(conversation))
    experiment = conversation.study.experiment
    unknown = ["the architecture of the model"] if experiment.model is None else list(experiment.model.missing())
    unknown += [name.replace("_", " ") for name, value in _sizes(conversation).items() if value is None]
    if unknown:
        answer.say(f"- what is not on record: {', '.join(unknown)}")
    answer.say(*(f"- a fuller profile: {gap.what.rstrip('.')}" for gap in conversation.study.diagnosis.missing))


def evidence(conversation: Conversation, answer: Draft) -> None:
    """What is on record beside the analysis."""
    lines = on_record(conversation.evidence)
    answer.say(*(lines or ["There is no evidence in this session."]))
    lost = conversation.weighed.lost if conversation.evidence else {}
    answer.say(*(f"- {plan} is out: {item}" for plan, item in lost.items()))


def _sizes(conversation: Conversation) -> dict[str, int | None]:
    workload = conversation.study.experiment.workload
    return {"global_batch": workload.global_batch, "sequence_length": workload.sequence_length}


def _behind(conversation: Conversation, best: Candidate, other: Candidate, rank: int) -> str:
    gap = best.score - other.score
    if gap < 0:
        return f"{line(conversation, other, rank)}: ranked behind by the agent, ahead by the engine."
    weak = ", less than undisturbed steps vary" if gap < NOISE else ""
    return f"{line(conversation, other, rank)}: behind by {format_percent(gap)} of expected gain after doubt{weak}."


def _thresholds(conversation: Conversation) -> list[str]:
    """What each proposal would have to measure to change places with the first."""
    standing = conversation.standing
    if len(standing) < 2:
        return ["- a run that fails, or a measured step time"]
    best, second = standing[0], standing[1]
    found = [f"- {best.plan} runs out of memory, fails, or measures more than {_time(conversation, second.score)}"]
    found += [f"- {other.plan} measures less than {_time(conversation, best.score)}" for other in standing[1:]]
    return found


def _time(conversation: Conversation, score: float) -> str:
    ratio = math.exp(-score)
    now = current_step_time(conversation.study, conversation.evidence)
    share = f"{ratio:.3f} of the step that runs now"
    return f"{seconds(ratio * now.value)} a step ({share})" if now else share
