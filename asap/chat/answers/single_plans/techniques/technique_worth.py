"""Whether a technique pays: the plan with it beside the plan without it, and which of them is to be preferred."""

from asap.chat.answers.phrasing import expectation, figures_of
from asap.chat.answers.single_plans.directions import no_such_plan, wished_plans
from asap.chat.answers.single_plans.figures import prediction_of
from asap.chat.answers.single_plans.whole_plan import whole
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.follow_up import plan_on_top
from asap.chat.understanding.question import Question
from asap.chat.understanding.references.partial_plan import data_axis
from asap.chat.understanding.references.wishes import Wish
from asap.chat.understanding.topics.topics import Topic
from asap.chat.understanding.words.worth import asks_worth, axes_in_short, of_what_was_spoken_of
from asap.core.errors import InsufficientEvidenceError
from asap.core.units import format_percent
from asap.diagnosis.facts import STEP_TIME_VARIATION
from asap.plans import Plan
from asap.plans.axes import MEANINGS, Axis
from asap.plans.validity import violations
from asap.prediction.prediction import Prediction
from asap.study.study import Study

_ROOM = ("fits", "may not fit", "does not fit")
"""What is said of HBM, from room enough to none."""


def techniques_asked(question: Question) -> tuple[Axis, ...]:
    """The axes of which a question asks whether they pay, no degree named."""
    if question.refs.written or not question.change.empty or not asks_worth(question.text):
        return ()
    wish = question.refs.wish
    if wish is not None and wish.axis == "replica" and wish.sense == "some":  # HSDP, which has two axes
        return ()
    return (wish.axis,) if wish else axes_in_short(question.text)


def technique_worth(conversation: Conversation, answer: ReplyBuilder, question: Question, axis: Axis) -> None:
    """Of what runs now, or of the plan that was spoken of where the question says so.

    Raises:
        InsufficientEvidenceError: the plan is not known, or nothing can be predicted.
    """
    answer.topic = Topic.WHY_NOT
    plan = plan_in_question(conversation, question)
    if plan.degree(axis) > 1:
        _in_use(conversation, answer, plan, axis)
    else:
        _unused(conversation, answer, plan, axis)


def plan_in_question(conversation: Conversation, question: Question) -> Plan:
    """The plan in which a technique is asked about; raises InsufficientEvidenceError where none is known."""
    named = [mention.plan for mention in question.refs.mentions if mention.way != "pointing"]
    spoken_of = conversation.focus if of_what_was_spoken_of(question.text) else None
    plan = next(iter(named), spoken_of or conversation.study.plan)
    if plan is None:
        raise InsufficientEvidenceError("the current plan is not known", where=conversation.id, hint="--plan PLAN")
    return whole(conversation, plan)


def _in_use(conversation: Conversation, answer: ReplyBuilder, plan: Plan, axis: Axis) -> None:
    """The plan without the axis, whose devices go to data parallelism."""
    study = conversation.study
    without = _without(study, plan, axis)
    answer.add(f"{_title(axis)} ({axis}={plan.degree(axis)}) is used in {_named(study, plan)}:")
    if broken := violations(without, study.constraints):
        answer.add(f"- without it, {without} cannot run: {'; '.join(one.sentence for one in broken)}.")
        answer.add("It is needed, as long as all else stays as it is.")
        for other in wished_plans(conversation, Wish(axis, "none"))[:1] if plan == study.plan else ():
            answer.add("The best plan without it changes more than that:")
            _beside(conversation, answer, plan, other)
        return
    _beside(conversation, answer, plan, without)


def _unused(conversation: Conversation, answer: ReplyBuilder, plan: Plan, axis: Axis) -> None:
    """The best plan with the axis, of what runs now; of another plan, the one with the least of it."""
    study, wish = conversation.study, Wish(axis, "some")
    least = plan_on_top(study, plan, Plan().with_ici(**{axis: 2}))
    found = wished_plans(conversation, wish) if plan == study.plan else [whole(conversation, least)]
    found = [one for one in found if not violations(one, study.constraints)]
    if not found:
        no_such_plan(conversation, answer, wish)
        return
    answer.add(f"{_title(axis)} ({axis}) is not used in {_named(study, plan)}; with it, at best:")
    _beside(conversation, answer, found[0], plan)


def _beside(conversation: Conversation, answer: ReplyBuilder, having: Plan, without: Plan) -> None:
    rows = [prediction_of(conversation, plan) for plan in (having, without)]
    answer.add(verdict(*rows))
    for word, found in zip(("with it", "without it"), rows, strict=True):
        change = "" if found.plan == conversation.study.plan else f"{expectation(found)}; "
        answer.add(f"- {word}, {found.plan}: {change}{figures_of(found)}")
        answer.add_figure(f"{found.plan}: step time", found.relative_step_time or found.step_time)
    answer.focus = having


def verdict(having: Prediction, without: Prediction) -> str:
    """Which of two predictions is to be preferred, by HBM, then by the step."""
    step = _difference(having, without)
    if having.memory is None or without.memory is None or having.memory.verdict == without.memory.verdict:
        return step
    better = _ROOM.index(having.memory.verdict) < _ROOM.index(without.memory.verdict)
    pays = "For HBM it is worth it" if better else "Because of HBM it is not worth it"
    return f"{pays}: with it the plan {having.memory.verdict}, without it the plan {without.memory.verdict}. {step}"


def _difference(having: Prediction, without: Prediction) -> str:
    """What it does to the step, and whether that is more than steps vary by."""
    if having.step_time is None or without.step_time is None:
        return "How much it changes the step is not predicted."
    gain = 1 - having.step_time.value / without.step_time.value
    size = f"the step is predicted to be {format_percent(abs(gain))} {'shorter' if gain > 0 else 'longer'} with it"
    if abs(gain) < STEP_TIME_VARIATION:
        return f"In time it hardly matters: {size}, and steps vary by {format_percent(STEP_TIME_VARIATION, 0)}."
    open_ = any(_goes_both_ways(found) for found in (having, without))
    doubt = "the interval goes both ways, so measure it" if open_ else "the intervals say how sure that is"
    return f"In time it is predicted {'to pay' if gain > 0 else 'not to pay'}: {size}; {doubt}."


def _goes_both_ways(prediction: Prediction) -> bool:
    """Whether a plan may take longer or shorter than what runs now."""
    relative = prediction.relative_step_time
    return bool(
        relative and relative.low is not None and relative.high is not None and relative.low < 1 < relative.high
    )


def _without(study: Study, plan: Plan, axis: Axis) -> Plan:
    """The same plan with the devices of an axis given to data parallelism of the run's kind, or of the other kind."""
    freed: Axis = data_axis(study)
    if freed == axis:
        freed = "replica" if axis == "data" else "data"
    degree = getattr(plan.ici, axis)
    return study.with_micro_batch(plan.with_ici(**{axis: 1, freed: getattr(plan.ici, freed) * degree}))


def _title(axis: Axis) -> str:
    return MEANINGS[axis][0].upper() + MEANINGS[axis][1:]


def _named(study: Study, plan: Plan) -> str:
    return f"what runs now ({plan})" if plan == study.plan else str(plan)
