"""Answers on the order of the proposals: which first, how sure, an opinion, what would change it."""

import math
from collections.abc import Sequence
from pathlib import PurePath

from asap.chat.answers.phrasing import basis, drafted, lead, line, list_proposals, seconds
from asap.chat.answers.proposals.measurements import NOT_MODELLED
from asap.chat.answers.proposals.order.what_fits_now import too_tight_now
from asap.chat.answers.single_plans.whole_plan import whole
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.diagnosis.facts import STEP_TIME_VARIATION
from asap.evidence.fact import NO_GRAPHS, StatedFact
from asap.evidence.step_time import current_step_time
from asap.plans import Plan
from asap.proposals.recommend import recommend, with_trial
from asap.proposals.selection.candidate import Candidate
from asap.proposals.trials import OfferedTrial, most_promising, trials_of


def proposals(conversation: Conversation, answer: ReplyBuilder) -> None:
    """The current proposals."""
    if conversation.study.plan is not None:
        answer.add(f"now: {conversation.study.plan}")
    list_proposals(conversation, answer)


def trials_left(conversation: Conversation) -> tuple[OfferedTrial, ...]:
    """The settings to test, without those that were ruled out."""
    graphs = any(fact.about == NO_GRAPHS for fact in conversation.evidence)
    return tuple(one for one in trials_of(conversation.study) if not (graphs and one.name.startswith("cuda_graphs")))


def first(conversation: Conversation, answer: ReplyBuilder) -> None:
    """Which one to start with, and why it and not the next; the setting to test where no plan is."""
    current, trial = conversation.proposals, most_promising(trials_left(conversation))
    if not current:
        list_proposals(conversation, answer)
        if trial is not None:
            answer.add(f"Keep the plan, and test this: {trial.statement}", f"To test it: {trial.line}")
        return
    best = current[0]
    answer.focus = best.plan
    proposal = drafted(conversation, best, 1)
    tight = too_tight_now(conversation)
    advice = with_trial(recommend((proposal,), 1, tight), trial, best.prediction, tight)
    answer.add(advice.statement, *([f"To test it: {trial.line}"] if trial and advice.setting else []))
    if advice.setting and not advice.keep_incumbent:
        answer.add(f"Of the plans, as it runs: {line(conversation, best, 1)}")
        return
    answer.add(line(conversation, best, 1))
    answer.add_figure("step time over what runs now", best.prediction.relative_step_time)
    answer.add(*(f"+ {reason}" for reason in proposal.reasoning[:1]))
    answer.add(*(f"- {cost}" for cost in proposal.trade_offs[:1]))
    answer.add(*(_behind(conversation, best, other, rank) for rank, other in enumerate(current[1:], 2)))
    if trial is not None and not advice.setting:
        answer.add(f"Beside the plans: {trial.statement} To test it: {trial.line}")


def sure(conversation: Conversation, answer: ReplyBuilder, plans: list[Plan]) -> None:
    """How sure the prediction is, and what it is based on; the question changes nothing."""
    current = conversation.proposals
    if not current:
        list_proposals(conversation, answer)
        return
    chosen = conversation.candidate(plans[0]) if plans else None
    candidate = chosen[1] if chosen else current[0]
    rank = next((n for n, other in enumerate(current, 1) if other.plan == candidate.plan), None)
    answer.focus = candidate.plan
    answer.add(f"{line(conversation, candidate)}. This is based on:")
    basis(conversation, candidate, answer)
    place = f"proposal {rank}" if rank else "where it is"
    answer.add(f"The question adds no new fact, so {candidate.plan} stays {place}.")


def opinion_without_evidence(conversation: Conversation, answer: ReplyBuilder) -> None:
    """An opinion without evidence: the order stays, and this is what would change it."""
    current = conversation.proposals
    answer.add("That is no measurement and no new fact about this run, so the order stays:")
    list_proposals(conversation, answer)
    if current:
        answer.focus = current[0].plan
        answer.add("This would change it:", *_thresholds(conversation))


def stays(conversation: Conversation, answer: ReplyBuilder) -> None:
    """The order after an opinion about a plan that the engine has just evaluated."""
    order = ", ".join(str(candidate.plan) for candidate in conversation.proposals)
    answer.add(f"That is the engine's prediction. Without a measurement or a new fact the order stays: {order}.")


def suppose(conversation: Conversation, answer: ReplyBuilder, supposed: Sequence[StatedFact]) -> None:
    """The order under facts that are only supposed; nothing is recorded."""
    now = [candidate.plan for candidate in conversation.proposals]
    supposed_conversation = conversation.with_evidence(supposed)
    answer.add(f"Assuming that {'; '.join(map(str, supposed))}:")
    list_proposals(supposed_conversation, answer)
    then = [candidate.plan for candidate in supposed_conversation.proposals]
    answer.add(
        "The order would be the same." if now == then else f"Until that is a fact, it stays {', '.join(map(str, now))}."
    )


def change_of_mind(conversation: Conversation, answer: ReplyBuilder) -> None:
    """The facts that would change the order, with their thresholds."""
    list_proposals(conversation, answer)
    answer.add("This would change the order:")
    answer.add(*_thresholds(conversation))
    experiment = conversation.study.experiment
    unknown = ["the architecture of the model"] if experiment.model is None else list(experiment.model.missing())
    unknown += [name.replace("_", " ") for name, value in _sizes(conversation).items() if value is None]
    if unknown:
        answer.add(f"- what is not on record: {', '.join(unknown)}")
    answer.add(*(f"- a fuller profile: {gap.what.rstrip('.')}" for gap in conversation.study.diagnosis.missing))


def basis_of(conversation: Conversation, answer: ReplyBuilder, plans: Sequence[Plan]) -> None:
    """What is measured, what is modelled, and where the width of an interval comes from.

    The interval is that of the plan that is named, else of the one under discussion, else of the first.
    """
    study, current = conversation.study, conversation.proposals
    profile = study.profile
    if profile is None:
        answer.add("measured: nothing. There is no profile and no step time on record; all figures are modelled.")
    else:
        kind = "stated" if profile.stated else "measured"
        answer.add(f"{kind}: the facts of what runs now ({PurePath(profile.source).name or profile.source})")
    answer.add(*(f"stated by you: {item}" for item in conversation.evidence))
    answer.add("modelled: step time, HBM and communication of every plan that has not been measured", NOT_MODELLED)
    spoken_of = [conversation.focus] if conversation.focus else []
    plan = next(iter([*plans, *spoken_of, *(each.plan for each in current)]), None)
    found = conversation.candidate(plan) if plan else None
    if found is not None:
        answer.focus = found[1].plan
        answer.add(f"{line(conversation, found[1])}. The interval rests on:")
        basis(conversation, found[1], answer)
    if study.experiment.model is None:
        answer.add(
            "- the architecture is not on record: shares of the profile are scaled by ratios of degrees, which is rough"
        )


def false_claim(conversation: Conversation, answer: ReplyBuilder, plans: Sequence[Plan]) -> None:
    """Somebody quotes the engine with what it did not say."""
    current = conversation.proposals
    if not current:
        list_proposals(conversation, answer)
        return
    answer.focus = current[0].plan
    answer.add("No, I did not say that. My figures are on record, and they are:")
    list_proposals(conversation, answer)
    for plan in plans:
        full = whole(conversation, plan)
        if full not in conversation.order and (found := conversation.candidate(full)):
            answer.add(line(conversation, found[1]))
    answer.add(f"The first is proposal 1, {current[0].plan}. A measurement would change the order; a claim does not.")


def evidence(conversation: Conversation, answer: ReplyBuilder) -> None:
    """What is on record beside the analysis."""
    for item in conversation.evidence:
        kind = "compiled" if item.compiled else "measured" if item.session else "stated"
        answer.add(
            f'{conversation.number(item)}. {item} ({kind}: "{item.words}") · /forget {conversation.number(item)}'
        )
    if not conversation.evidence:
        answer.add("There is no evidence in this session: no facts were stated.")
    excluded = conversation.revised.excluded if conversation.evidence else {}
    answer.add(*(f"- {plan} is excluded: {item}" for plan, item in excluded.items()))


def _sizes(conversation: Conversation) -> dict[str, int | None]:
    workload = conversation.study.experiment.workload
    return {"global_batch": workload.global_batch, "sequence_length": workload.sequence_length}


def _behind(conversation: Conversation, best: Candidate, other: Candidate, rank: int) -> str:
    gap = best.score - other.score
    if gap < 0:
        return f"{line(conversation, other, rank)}: ranked behind by the agent, ahead by the engine."
    weak = ", less than the noise between steps" if gap < STEP_TIME_VARIATION else ""
    return f"{rank}. {other.plan}: behind {lead(gap)}{weak}."


def _thresholds(conversation: Conversation) -> list[str]:
    """What each proposal would have to measure to change places with the first."""
    current = conversation.proposals
    if len(current) < 2:
        return ["- a run that fails, or a measured step time"]
    best, second = current[0], current[1]
    found = [f"- proposal 1 runs out of memory, fails, or measures more than {_time(conversation, second.score)}"]
    limit = _time(conversation, best.score)
    return found + [f"- proposal {rank} measures less than {limit}" for rank in range(2, len(current) + 1)]


def _time(conversation: Conversation, score: float) -> str:
    ratio = math.exp(-score)
    now = current_step_time(conversation.study, conversation.evidence)
    share = f"{ratio:.3f} of the step that runs now"
    return f"{seconds(ratio * now.value)} a step ({share})" if now else share
