"""What if the batch, the sequence, the hardware, the model or a setting were different? Nothing is recorded."""

from collections.abc import Sequence

from asap.chat.answers.phrasing import expectation, figures_of, fit, line
from asap.chat.answers.single_plans.numerics import numerics_of
from asap.chat.answers.single_plans.techniques.technique_worth import verdict
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.scenario.completeness import is_complete
from asap.chat.scenario.scenario import Scenario, predict_scenario, scenario_of
from asap.chat.understanding.quantities.changes import Change
from asap.core.errors import InsufficientEvidenceError, PlanError
from asap.core.text import plain
from asap.core.units import format_percent, format_seconds, significant
from asap.evidence.anchor import modelled_now
from asap.evidence.step_time import current_step_time
from asap.levers.rematerialisation import policies as known_policies
from asap.plans import Plan, Remat
from asap.plans.validity import violations
from asap.prediction.predict_study import expect
from asap.prediction.prediction import Prediction
from asap.proposals.launch import why_not_launched
from asap.proposals.selection.candidate import Candidate, fits
from asap.proposals.selection.choice import choose
from asap.proposals.selection.search import run_of
from asap.study.study import Study


def what_if(
    conversation: Conversation,
    answer: ReplyBuilder,
    change: Change,
    plan: Plan | None = None,
    *,
    weigh: bool = False,
    to_fit: bool = False,
) -> None:
    """The step, the memory and the order of the proposals after a change.

    Args:
        conversation: what was analysed, stated and spoken of.
        answer: where the lines go.
        change: what is to be different.
        plan: of which plan; by default what runs now.
        weigh: whether it pays is said first.
        to_fit: whether it fits is said first, and no other plan where it does.

    Raises:
        InsufficientEvidenceError: the engine cannot tell.
        PlanError: the plan cannot run then.
    """
    named, start = plan or conversation.study.plan, len(answer.lines)
    same = named is not None and isinstance(named.remat, Remat) and change == Change(remat=named.remat)
    if change.remat == "any" or same:
        policies(conversation, answer, named)
        return
    scenario = scenario_of(conversation.study, change, plan)
    if not scenario.changes and scenario.plan == conversation.study.plan and not is_complete(conversation.study):
        answer.add("That is so already: nothing would change.")
        return
    if scenario.settings_only:
        _settings(conversation, answer, scenario, change, weigh=weigh)
        return
    head, notes = f"With {' and '.join(scenario.changes)}", [f"! {note}" for note in scenario.notes]
    answer.add(f"{head}:", *notes)
    if not is_complete(scenario.study):
        _without_architecture(conversation, answer, scenario)
        return
    try:
        found = predict_scenario(scenario)
    except PlanError as error:
        if scenario.study.experiment.hardware == conversation.study.experiment.hardware:
            raise
        answer.add(f"- {plain(error)}. What can run there:")
        before = len(answer.lines)
        _new_order(conversation, scenario.study, answer)
        answer.add(*([] if len(answer.lines) > before else ["- no valid plan is known"]))
        return
    gained_nothing = _nothing_gained(conversation, change)
    if weigh and scenario.before is not None and not change.counts and not change.hardware:
        having = gained_nothing or [verdict(found, _now(conversation, scenario.before))]
        answer.lines[start:start] = [*having, *filter(None, [numerics_of(conversation.study, change)])]
        gained_nothing = []
    answer.add(f"- {_subject(conversation, scenario)}: {figures_of(found)}{_ratio(conversation, scenario, found)}")
    answer.add(*_not_launched(scenario.study, found.plan))
    answer.add(*_examples(change), *(f"- {sentence}" for sentence in gained_nothing))
    if change.network is not None:
        answer.add("- to keep this network for the run: asap experiments add … --network")
    answer.add_figure(f"{found.plan}: step time", found.step_time)
    answer.focus = scenario.before
    if to_fit and found.memory is not None:
        answer.lines[answer.lines.index(f"{head}:")] = f"{head} it {found.memory.verdict}:"
        if fits(found):
            return
    _new_order(conversation, scenario.study, answer)


def policies(conversation: Conversation, answer: ReplyBuilder, plan: Plan | None) -> list[Prediction]:
    """A plan with each rematerialisation, its own first; raises InsufficientEvidenceError without the architecture."""
    study = conversation.study
    if plan is None:
        raise InsufficientEvidenceError("the current plan is not known", where=conversation.id)
    others = [plan.model_copy(update={"remat": policy}) for policy in _policies(study) if policy != plan.remat]
    predictions = expect(study, [plan, *others] if plan.remat is not None else others)
    if all(prediction.method == "profile_ratios" for prediction in predictions):
        raise InsufficientEvidenceError(
            "the effect of another rematerialisation depends on the architecture, which is not on record",
            where=conversation.id,
            hint="asap experiments add ID --config FILE --hardware NAME --profile PATH",
        )
    answer.add(f"The same mesh with another rematerialisation (now {plan.remat or 'not on record'}):")
    for prediction in predictions:
        own = ", as it is" if prediction.plan == plan else ""
        runs = prediction.plan == study.plan
        said = figures_of(prediction) if runs else f"{expectation(prediction)}{fit(prediction)}"
        answer.add(f"- {prediction.plan}{own}: {said}")
        answer.add_figure(f"{prediction.plan}: step time", prediction.relative_step_time)
    return predictions


def _settings(
    conversation: Conversation, answer: ReplyBuilder, scenario: Scenario, change: Change, *, weigh: bool
) -> None:
    found = predict_scenario(scenario)
    study, before = conversation.study, scenario.before
    (now,) = expect(study, [before]) if before is not None else (None,)
    already = "That is so already" if found.plan == study.plan else "Predicted"
    changed = f"With {' and '.join(scenario.changes)}" if scenario.changes else already
    if weigh and now is not None and now.plan != found.plan:
        answer.add(verdict(found, now))
    answer.add(f"{changed}, {_subject(conversation, scenario)}:")
    answer.add(f"- {expectation(found)}; {figures_of(found)}", *_not_launched(study, found.plan))
    if now is not None and now.plan != found.plan:
        answer.add(f"- instead of {figures_of(now)}")
    answer.add(*_examples(change), *_fastest_that_fits(conversation, found))
    answer.add_figure(f"{found.plan}: step time", found.relative_step_time or found.step_time)
    answer.focus = found.plan


def _not_launched(study: Study, plan: Plan) -> list[str]:
    """That the run's launcher refuses a plan."""
    reason = why_not_launched(study, plan)
    return [f"! it cannot be launched as it stands: {plain(reason)}"] if reason else []


def _fastest_that_fits(conversation: Conversation, found: Prediction) -> list[str]:
    """The fastest rematerialisation that fits, where the one that is asked for does not."""
    if found.memory is None or found.memory.fits:
        return []
    study = conversation.study
    plans = [found.plan.model_copy(update={"remat": policy}) for policy in _policies(study)]
    fitting = [one for one in expect(study, plans) if one.memory and one.memory.fits and one.step_time]
    best = min(fitting, key=lambda one: one.step_time.value if one.step_time else 0.0, default=None)
    return [f"- the fastest that fits: {best.plan}: {expectation(best)}; {figures_of(best)}"] if best else []


def _subject(conversation: Conversation, scenario: Scenario) -> str:
    own = scenario.before == conversation.study.plan
    return f"what runs now ({scenario.plan})" if own else str(scenario.plan)


def _ratio(conversation: Conversation, scenario: Scenario, found: Prediction) -> str:
    """How the step compares with what it is now; anchored to a measured step where there is one."""
    study = conversation.study
    if scenario.before is None or found.step_time is None or not is_complete(study):
        return ""
    now = _now(conversation, scenario.before)
    if now.step_time is None:
        return ""
    ratio = found.step_time.value / now.step_time.value
    than = "as now" if scenario.before == study.plan else "as it does without that"
    text = (
        f"; the step takes {significant(ratio)} times as long {than} ({format_seconds(now.step_time.value)} predicted)"
    )
    text += _scaling(now, found)
    measured = current_step_time(study, conversation.evidence)
    if measured is not None and scenario.before == study.plan:
        after = format_seconds(measured.value * ratio)
        text += f", so {after} from the {format_seconds(measured.value)} that were measured"
    return text


def _scaling(now: Prediction, then: Prediction) -> str:
    """How much of the rate of a chip other chips, or another number of them, keep."""
    if now.tokens_per_second is None or then.tokens_per_second is None or now.plan.devices == then.plan.devices:
        return ""
    before, after = (one.tokens_per_second.value / one.plan.devices for one in (now, then) if one.tokens_per_second)
    return f"; {significant(after, 4)} tokens/s a chip, {format_percent(after / before, 0)} of now"


def _now(conversation: Conversation, plan: Plan) -> Prediction:
    """A plan as it is without the change; what runs now by the model alone."""
    study = conversation.study
    return (modelled_now(study) if plan == study.plan else None) or expect(study, [plan])[0]


def _examples(change: Change) -> list[str]:
    """What was taken for a direction without a number."""
    taken = [(thing.replace("_", " "), to.value) for thing, to in change.counts if to.example]
    return [
        f'- You named no number: {"twice" if factor > 1 else "half"} is an example. Another one: "what if {thing} N?"'
        for thing, factor in taken
    ]


def _nothing_gained(conversation: Conversation, change: Change) -> list[str]:
    """What a change of precision cannot bring on this chip."""
    study = conversation.study
    if change.precision is None or study.slice is None:
        return []
    peaks = study.slice.chip.peak_flops
    if change.precision in peaks:
        return []
    known = ", ".join(peaks)
    return [
        f"{study.slice.chip.title} has no faster {change.precision} arithmetic on record (it has {known}): no gain."
    ]


def _without_architecture(conversation: Conversation, answer: ReplyBuilder, scenario: Scenario) -> None:
    """What is known without the architecture: which plans remain possible, and in which order."""
    answer.add("- how long a step then takes is unknown: that follows from the architecture, batch and sequence,")
    answer.add("  which are not all on record (asap experiments add ID --config FILE --hardware NAME --profile PATH)")
    workload_only = scenario.study.experiment.hardware == conversation.study.experiment.hardware
    if (
        workload_only
        and scenario.study.experiment.workload.precision == conversation.study.experiment.workload.precision
    ):
        _new_order(conversation, scenario.study, answer)


def _new_order(conversation: Conversation, study: Study, answer: ReplyBuilder) -> None:
    """The proposals in the changed run; on other hardware, where they cannot run, the best plans there."""
    now = [candidate.plan for candidate in conversation.proposals]
    possible = [plan for plan in now if not violations(plan, study.constraints)]
    if now and len(possible) == len(now) and is_complete(study):
        _same_plans(conversation, study, now, answer)
        return
    ranked = conversation.rank(study)
    chosen = choose([c for c in ranked.candidates if c.plan not in conversation.revised.excluded], study.plan)
    for rank, candidate in enumerate(chosen, 1):
        answer.add(line(conversation, candidate, rank))
        answer.add_figure(f"{candidate.plan}: step time", candidate.prediction.relative_step_time)
    _difference(now, [candidate.plan for candidate in chosen], answer)


def _same_plans(conversation: Conversation, study: Study, plans: list[Plan], answer: ReplyBuilder) -> None:
    found = expect(study, plans)
    for place, prediction in enumerate(found, 1):
        answer.add(f"- proposal {place}, {prediction.plan}: {expectation(prediction)}{fit(prediction)}")
        answer.add_figure(f"{prediction.plan}: step time", prediction.relative_step_time)
    if not any(fits(prediction) for prediction in found):
        _what_fits(conversation, study, answer)


def _what_fits(conversation: Conversation, study: Study, answer: ReplyBuilder) -> None:
    """The best plans that fit the changed run, where none of the proposals does."""
    ranked = [one for one in conversation.rank(study).candidates if fits(one.prediction)]
    allowed = [one for one in ranked if one.plan not in conversation.revised.excluded]
    best = min(allowed, key=_step, default=None)
    if best is None:
        answer.add(
            "None of the proposals fits, and no plan that fits is known: it takes more chips, or a smaller batch."
        )
        return
    chosen = choose(allowed, study.plan) or [best]
    answer.add("None of the proposals fits. What fits, best first:")
    for rank, candidate in enumerate(chosen, 1):
        step = f"; {figures_of(candidate.prediction)}" if rank == 1 else ""
        answer.add(f"{line(conversation, candidate, rank)}{step}")
        answer.add_figure(f"{candidate.plan}: step time", candidate.prediction.step_time)


def _step(candidate: Candidate) -> float:
    step = candidate.prediction.relative_step_time or candidate.prediction.step_time
    return step.value if step is not None else float("inf")


def _difference(now: Sequence[Plan], then: Sequence[Plan], answer: ReplyBuilder) -> None:
    if list(now) == list(then):
        answer.add("The order is the same.")
    elif now and then and now[0] != then[0]:
        answer.add(f"The first one there: {then[0]} (here: {now[0]}).")
    elif then:
        answer.add("The first stays the same; the others change.")


def _policies(study: Study) -> Sequence[Remat]:
    """The policies that the framework knows."""
    if study.slice is None:
        return tuple(Remat)
    return known_policies(run_of(study))
