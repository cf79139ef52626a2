"""Short answers on the proposals: one sentence, worth it or not, in a table."""

from collections.abc import Sequence

from asap.chat.answers.phrasing import expectation, lead, list_proposals
from asap.chat.answers.proposals.order.what_fits_now import too_tight_now
from asap.chat.answers.single_plans.figures import prediction_of
from asap.chat.answers.single_plans.whole_plan import whole
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.core.units import format_bytes, format_percent, format_seconds
from asap.diagnosis.facts import STEP_TIME_VARIATION
from asap.evidence.anchor import modelled_now
from asap.plans import Plan
from asap.proposals.reasons.explain import confidence
from asap.proposals.reasons.modelled_step import modelled_step
from asap.proposals.selection.candidate import Candidate
from asap.proposals.situation import TOO_TIGHT
from asap.reports import phrases


def summary(conversation: Conversation, answer: ReplyBuilder) -> None:
    """The analysis in one sentence."""
    study, current = conversation.study, conversation.proposals
    held = study.diagnosis.bottleneck.value.replace("_", " ")
    unknown = study.diagnosis.bottleneck.value == "insufficient_evidence"
    modelled = modelled_step(study, modelled_now(study))
    if not unknown:
        bound = f"the run is bound by {held} ({study.diagnosis.statement.rstrip('.')})"
    elif modelled is not None:
        bound = f"by the model the step waits most for {modelled.bottleneck}, which is not measured yet"
    else:
        bound = "what bounds the run is not measured yet"
    if not current:
        answer.add(f"{study.experiment.id}: {bound}, and no other plan can be ranked.")
        return
    best = current[0]
    answer.focus = best.plan
    answer.add(f"{study.experiment.id}: {bound}; test {best.plan} first: {expectation(best.prediction)}.")
    answer.add_figure("step time over what runs now", best.prediction.relative_step_time)


def worth_it(conversation: Conversation, answer: ReplyBuilder, plans: Sequence[Plan]) -> None:
    """Whether a gain is above what undisturbed steps vary by."""
    current = conversation.proposals
    others = [plan for plan in plans if plan != conversation.study.plan]
    named = whole(conversation, others[0]) if others else None
    chosen = conversation.candidate(named) if named else None
    candidate = chosen[1] if chosen else (current[0] if current else None)
    if named is not None and chosen is None:
        candidate = Candidate(prediction_of(conversation, named), 0.0)
    if candidate is None:
        list_proposals(conversation, answer)
        return
    answer.focus = candidate.plan
    relative = candidate.prediction.relative_step_time
    answer.add(f"{candidate.plan}: {expectation(candidate.prediction)}.")
    answer.add_figure("step time over what runs now", relative)
    if relative is None:
        answer.add("There is nothing to compare it with.")
        return
    gain, noise = 1 - relative.value, f"{format_percent(STEP_TIME_VARIATION, 0)} by which undisturbed steps vary"
    chance = confidence(conversation.study, candidate.prediction, ()).faster
    odds = f" (P(faster) {phrases.probability(chance)})" if chance else ""
    held = candidate.prediction.memory
    if (tight := too_tight_now(conversation)) is not None:
        fits = held is not None and held.verdict == "fits"
        verdict = "this plan fits, so it is worth a test" if fits else "this plan is not sure to fit either"
        answer.add(f"What runs now {TOO_TIGHT[tight.name]}, so it is nothing to keep; {verdict}.")
    elif gain <= 0:
        answer.add(f"Not worth it: no gain is expected{odds}. Keep what you have.")
    elif gain < STEP_TIME_VARIATION:
        answer.add(f"Hardly: the gain is below the {noise}{odds}, so keeping what you have is as good an answer.")
    else:
        answer.add(f"The gain is above the {noise}{odds}: a run of a few dozen steps would show it.")


def table(conversation: Conversation, answer: ReplyBuilder, plans: Sequence[Plan]) -> None:
    """Plans side by side: step time, communication, memory, chance."""
    study = conversation.study
    now = f" (now: {study.plan})" if study.plan else ""
    answer.add(f"plan | step time | HBM | communication | P(faster){now}")
    for plan in plans:
        whole = study.complete(plan)
        prediction = prediction_of(conversation, whole)
        chance = confidence(study, prediction, ()).faster if whole != study.plan else None
        memory = prediction.memory
        held = "unknown" if memory is None else f"{format_bytes(memory.total.value)} ({memory.verdict})"
        sent = format_percent(prediction.communication.value) if prediction.communication else "unknown"
        step = f"{format_seconds(prediction.step_time.value)}, " if prediction.step_time else ""
        rank = conversation.order.index(whole) + 1 if whole in conversation.order else None
        name = f"{rank}. {whole}" if rank else str(whole)
        answer.add(
            f"{name} | {step}{phrases.relative_change(prediction)} | {held} | {sent} | {phrases.probability(chance)}"
        )
        answer.add_figure(f"{whole}: step time", prediction.relative_step_time or prediction.step_time)
    _gap(conversation, answer, plans)


def _gap(conversation: Conversation, answer: ReplyBuilder, plans: Sequence[Plan]) -> None:
    """Whether the first two differ by more than the noise."""
    known = [found[1] for plan in plans if (found := conversation.candidate(conversation.study.complete(plan)))]
    if len(known) < 2:
        return
    first, second = sorted(known, key=lambda candidate: -candidate.score)[:2]
    gap = first.score - second.score
    weak = gap < STEP_TIME_VARIATION
    noise = f"{'below' if weak else 'above'} the {format_percent(STEP_TIME_VARIATION, 0)} noise between steps"
    answer.focus = first.plan
    answer.add(f"{first.plan} leads {second.plan} {lead(gap)}, {noise}.")
