"""Plans of which a direction or a part is named: "more tensor parallelism", "no pipeline", "keep tensor at 4"."""

from asap.chat.answers.phrasing import line
from asap.chat.answers.single_plans.plans import why_not
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.references.partial_plan import data_axis
from asap.chat.understanding.references.wishes import Wish
from asap.core.units import format_percent, format_seconds
from asap.plans import AXES, Plan
from asap.plans.axes import MEANINGS, Axis
from asap.plans.validity import violations
from asap.prediction.predict_study import candidate_plans, expect
from asap.prediction.prediction import Prediction
from asap.proposals.selection.candidate import fits
from asap.proposals.selection.choice import choose
from asap.proposals.selection.strategy import NAMES
from asap.study.study import Study


def wished_plans(conversation: Conversation, wish: Wish) -> list[Plan]:
    """The best valid plan in a direction: "more tensor parallelism", "pure FSDP", "no pipeline"."""
    study = conversation.study
    devices = study.constraints.devices_per_slice
    if study.plan is None or devices is None:
        return []
    if wish.sense == "only":
        return [Plan().with_ici(**{wish.axis: devices})]
    ranked = [candidate.plan for candidate in conversation.revised.ranked.candidates]
    if wish.sense == "none":
        missing = study.plan.degree(wish.axis)
        rest = study.plan.with_ici(**{wish.axis: 1})
        freed = data_axis(study)
        instead = study.with_micro_batch(rest.with_ici(**{freed: getattr(rest.ici, freed) * missing}))
        possible = [instead, *(plan for plan in ranked if plan.degree(wish.axis) == 1)]
        valid = [plan for plan in possible if not violations(plan, study.constraints)]
        return (valid or [instead])[:1] if missing > 1 else []
    if alone := _changed_alone(study, wish):
        return [alone]
    found = next((plan for plan in ranked if _lies_in_direction(plan, study.plan, wish)), None)
    if found is None:
        wider = [plan for plan in candidate_plans(study, AXES) if _lies_in_direction(plan, study.plan, wish)]
        found = min(expect(study, wider), key=_step_time).plan if wider else None
    return [found] if found is not None else []


def _changed_alone(study: Study, wish: Wish) -> Plan | None:
    """The fastest plan that changes the axis, and beside it no more than what gives or takes its devices."""
    now, data = study.plan, data_axis(study)
    if now is None:
        return None
    givers: set[Axis] = {wish.against} if wish.against else set()
    if not givers:
        givers = {"data", "replica"} if wish.axis not in {"data", "replica"} else set(MEANINGS)
        givers = {"data"} if wish.axis == "replica" and wish.sense == "some" else givers
    possible: list[Plan] = []
    for plan in candidate_plans(study, AXES):
        changed = {axis for axis in MEANINGS if plan.ici != now.ici and plan.degree(axis) != now.degree(axis)}
        others = changed - {wish.axis}
        if wish.axis in changed and len(others) == 1 and others <= givers and _lies_in_direction(plan, now, wish):
            same_data = wish.axis in {"data", "replica"} or wish.against or others == {data}
            possible += [study.complete(Plan(ici=plan.ici, dcn=plan.dcn))] if same_data else []
    found = expect(study, list(dict.fromkeys(possible))) if possible else []
    return min(found, key=lambda one: (not fits(one), _step_time(one))).plan if found else None


def best_with(conversation: Conversation, answer: ReplyBuilder, kept: Plan) -> None:
    """The best plans that leave some degrees as they are named."""
    named: list[Axis] = [axis for axis in MEANINGS if kept.degree(axis) > 1]
    ranked = conversation.revised.ranked.candidates
    left = [c for c in ranked if fits(c.prediction) and all(c.plan.degree(a) == kept.degree(a) for a in named)]
    if not left:
        why_not(conversation, answer, kept)
        return
    best = choose(left, conversation.study.plan)
    degrees = " ".join(f"{axis}={kept.degree(axis)}" for axis in named)
    if not best:
        answer.add(f"With {degrees} kept, no plan is expected to be faster than what runs now.")
        return
    answer.focus = best[0].plan
    answer.add(f"With {degrees} kept, the best of {len(left)} plans:")
    for candidate in best:
        answer.add(f"- {line(conversation, candidate)}")
        answer.add_figure(f"{candidate.plan}: step time", candidate.prediction.relative_step_time)


def correct_premise(conversation: Conversation, answer: ReplyBuilder, plan: Plan, wish: Wish) -> None:
    """Say so where a plan does not do to an axis what a question takes for granted, and what the axis costs now."""
    now = conversation.study.plan
    if now is None or _lies_in_direction(plan, now, wish):
        return
    degree, after = now.degree(wish.axis), plan.degree(wish.axis)
    became = f"stays at {degree}" if degree == after else f"goes from {degree} to {after}"
    answer.add(f"{plan} does not do that: {wish.axis} ({NAMES[wish.axis]}) {became}.")
    incumbent = conversation.revised.ranked.incumbent
    if incumbent is None or incumbent.step_time is None:
        return
    for part in incumbent.parts:
        if part.axis == wish.axis:
            share = format_percent(part.exposed_s / incumbent.step_time.value)
            answer.add(f"Its {part.name} adds {format_seconds(part.exposed_s)} to the step now ({share}, modelled).")


def no_such_plan(conversation: Conversation, answer: ReplyBuilder, wish: Wish) -> None:
    """Say that no valid plan lies in the direction that was asked for."""
    plan = conversation.study.plan
    if plan is not None and wish.sense == "none" and plan.degree(wish.axis) == 1:
        _without(conversation, answer, wish.axis)
    elif plan is not None:
        change = "less" if wish.sense in {"less", "none", "half"} else "more"
        answer.add(f"No valid plan has {change} {NAMES[wish.axis]} than what runs now ({plan}), as far as is known.")


def _without(conversation: Conversation, answer: ReplyBuilder, axis: Axis) -> None:
    """What runs lacks the axis already; the best other plan that does."""
    ranked = conversation.revised.ranked.candidates
    left = [one for one in ranked if fits(one.prediction) and one.plan.degree(axis) == 1]
    answer.complete = True
    answer.add(
        f"What runs now has no {NAMES[axis]}. "
        + ("Of the others without it, the best:" if left else "No other plan without it fits.")
    )
    if left:
        answer.focus = left[0].plan
        answer.add(f"- {line(conversation, left[0])}")


def _lies_in_direction(plan: Plan, incumbent: Plan, wish: Wish) -> bool:
    degree = plan.degree(wish.axis)
    if wish.sense in {"half", "twice"}:
        return (
            degree * 2 == incumbent.degree(wish.axis)
            if wish.sense == "half"
            else degree == 2 * incumbent.degree(wish.axis)
        )
    if wish.sense == "some":
        return degree > 1
    change = degree - incumbent.degree(wish.axis)
    return change > 0 if wish.sense == "more" else change < 0


def _step_time(prediction: Prediction) -> float:
    quantity = prediction.relative_step_time or prediction.step_time
    return quantity.value if quantity else float("inf")
