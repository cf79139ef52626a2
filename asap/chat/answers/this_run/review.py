"""What is wrong with the run as it is configured: its situation, what holds it back, its flags, the first remedy."""

from asap.chat.answers.phrasing import line
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.evidence.anchor import modelled_now
from asap.proposals.reasons.modelled_step import modelled_step
from asap.proposals.situation import situation_of
from asap.proposals.trials import most_promising, trials_of
from asap.reports.flags import flag_sentences
from asap.study.flags import flags_of


def review(conversation: Conversation, answer: ReplyBuilder) -> None:
    """The run at a glance, worst first."""
    study, ranked, current = conversation.study, conversation.revised.ranked, conversation.proposals
    best = current[0] if current else None
    prediction, trial = best.prediction if best else None, most_promising(trials_of(study))
    answer.add(situation_of(study, ranked.incumbent, prediction, ranked.considered, trial).statement)
    step = modelled_step(study, modelled_now(study)) if study.profile is None else None
    answer.add(step.statement if step else study.diagnosis.statement)
    answer.add(*(f"- {sentence}" for sentence in flag_sentences(flags_of(study))))
    answer.add(*(f"! {warning}" for warning in study.warnings))
    if best is not None:
        answer.focus = best.plan
        answer.add(line(conversation, best, 1))
        answer.add_figure(f"{best.plan}: step time", best.prediction.relative_step_time)
