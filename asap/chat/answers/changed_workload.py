"""What another batch or another sequence length would change."""

from collections.abc import Sequence
from typing import Literal

from asap.chat.answers.phrasing import line
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.changes import target
from asap.core.provenance import Quantity
from asap.core.units import significant
from asap.experiments import Experiment
from asap.plans import Plan
from asap.plans.validity import violations
from asap.proposals.ranking import choose
from asap.study.study import Study, study_of


def change_workload(
    conversation: Conversation, answer: ReplyBuilder, field: Literal["global_batch", "sequence_length"], text: str
) -> None:
    """The step and the order of the proposals with another batch or sequence length."""
    experiment, name = conversation.study.experiment, field.replace("_", " ")
    known = getattr(experiment.workload, field)
    new = target(text, known)
    if new is None:
        asked = "Our batch is 256" if field == "global_batch" else "Our sequence length is 8192"
        answer.add(f'The {name} is not on record, so it cannot be scaled. State it: "{asked}".')
        return
    workload = experiment.workload.model_copy(update={field: new})
    study = _without_step_time(conversation.study, experiment.model_copy(update={"workload": workload}))
    answer.add(f"With a {name} of {new}{f' instead of {known}' if known else ''}:")
    _step_ratio(conversation, study, answer)
    _new_order(conversation, study, answer)


def _without_step_time(study: Study, experiment: Experiment) -> Study:
    """The study of a changed record: the measured shares of the step still hold, its duration does not."""
    profile = study.profile
    if profile is not None:
        profile = profile.model_copy(update={"kpis": profile.kpis.model_copy(update={"step_time_s": None})})
    return study_of(experiment, profile)


def _step_ratio(conversation: Conversation, changed: Study, answer: ReplyBuilder) -> None:
    """How the step of the current plan changes, where the architecture is known."""
    plan, experiment = conversation.study.plan, changed.experiment
    if plan is None:
        return
    broken = violations(plan, changed.constraints)
    if broken:
        answer.add(f"- what runs now ({plan}) could not run: {'; '.join(v.sentence for v in broken)}")
        return
    if (
        changed.slice is None
        or experiment.model is None
        or experiment.model.missing()
        or not experiment.workload.tokens
    ):
        answer.add("- how long a step then takes is not known: that follows from the architecture, batch and sequence")
        return
    from asap.prediction import predict

    before, after = (
        predict(plan, study.experiment.model, study.experiment.workload, changed.slice)[0].step_time
        for study in (conversation.study, changed)
    )
    _say_ratio(answer, plan, before, after)


def _say_ratio(answer: ReplyBuilder, plan: Plan, before: Quantity | None, after: Quantity | None) -> None:
    if before is not None and after is not None:
        answer.add(
            f"- a step of what runs now ({plan}) takes {significant(after.value / before.value)} times as long"
            f" ({after.provenance.value})"
        )
        answer.add_figure("step time after the change", after)
        answer.add_figure("step time before the change", before)


def _new_order(conversation: Conversation, study: Study, answer: ReplyBuilder) -> None:
    now = [candidate.plan for candidate in conversation.proposals]
    ranked = conversation.rank(study)
    chosen = choose([c for c in ranked.candidates if c.plan not in conversation.revised.excluded], study.plan)
    for rank, candidate in enumerate(chosen, 1):
        answer.add(line(conversation, candidate, rank))
        answer.add_figure(f"{candidate.plan}: step time", candidate.prediction.relative_step_time)
    _difference(now, [candidate.plan for candidate in chosen], answer)


def _difference(now: Sequence[Plan], then: Sequence[Plan], answer: ReplyBuilder) -> None:
    if list(now) == list(then):
        answer.add("The order is the same.")
    elif now and then and now[0] != then[0]:
        answer.add(f"The first one changes: {then[0]} instead of {now[0]}.")
    else:
        answer.add("The first stays the same; the others change.")
