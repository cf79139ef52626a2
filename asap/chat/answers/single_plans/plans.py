"""Answers on single plans: why not this one, what speaks for it, how two compare, the line to paste."""

import math
import re
from collections.abc import Sequence
from typing import get_args

from asap.chat.answers.phrasing import drafted, expectation, figures_of, fit, lead, line
from asap.chat.answers.single_plans.axis_cost import axis_cost
from asap.chat.answers.single_plans.changed_alone import changed_alone, changes_in_words
from asap.chat.answers.single_plans.figures import prediction_of
from asap.chat.answers.single_plans.megatron_fsdp import meaning_of_fsdp
from asap.chat.answers.single_plans.whole_plan import whole
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.references.partial_plan import data_axis, named_axes
from asap.chat.understanding.words.details import wants_details
from asap.core.errors import PlanError
from asap.core.units import format_percent, format_seconds
from asap.diagnosis.facts import STEP_TIME_VARIATION
from asap.plans import Plan
from asap.plans.axes import MEANINGS, Axis
from asap.plans.launchers import TITLES
from asap.plans.plan import SETTINGS
from asap.plans.validity import violations
from asap.prediction.predict_study import expect, usual_axes
from asap.proposals.launch import mesh_that_stays
from asap.proposals.reasons.explain import trade_offs
from asap.proposals.selection.candidate import Candidate, expected_gain, fit_odds, fits
from asap.proposals.selection.strategy import NAMES

_AXES: tuple[Axis, ...] = get_args(Axis)
_OF_ORDER = re.compile(r"\b(?:why|how come|how can|reasons?|counts?)\b", re.I)
"""Asks what makes the order of two plans."""
_FIRST = 2
"""Reasons and costs of a short answer."""


def why_not(conversation: Conversation, answer: ReplyBuilder, plan: Plan) -> None:
    """What the engine expects of a plan, or the rule that it breaks."""
    study = conversation.study
    full = whole(conversation, plan)
    answer.focus = full
    if full == study.plan:
        answer.add(f"{full} is the current plan; everything is compared with it.")
        _instead(conversation, answer, plan)
        return
    if full.ici != plan.ici:
        answer.add(f"{plan} with {_rest(plan, full)} is {full.ici}.")
    if (meaning := meaning_of_fsdp(study, full)) is not None:
        answer.add(meaning)
    broken = violations(full, study.constraints)
    if broken:
        answer.add(f"{plan} cannot run: {'; '.join(violation.sentence for violation in broken)}.")
        _nearest(conversation, answer, plan)
        return
    if full in conversation.revised.excluded:
        answer.add(f"{full} is excluded by evidence: {conversation.revised.excluded[full]}.")
        return
    found = conversation.candidate(full)
    if found is None:
        prediction = expect(study, [full])[0]
        answer.add(f"{line(conversation, Candidate(prediction, 0.0))}.")
        answer.add(f"It is valid as far as is known, but not ranked: {_unranked(conversation, full)}.")
        answer.add_figure(f"{full}: step time", prediction.relative_step_time or prediction.step_time)
    else:
        _place(conversation, answer, *found)
    _in_their_place(conversation, answer, plan, full)


def _rest(named: Plan, full: Plan) -> str:
    """What takes the devices that a plan leaves, and whether other axes stay as they run now."""
    kept: list[Axis] = [
        axis for axis in named_axes(full) if named.degree(axis) == 1 and axis not in {"data", "replica"}
    ]
    if {"data", "replica"} & set(named_axes(named)):
        return " and ".join(f"{MEANINGS[axis]} {full.degree(axis)}" for axis in kept) or "the rest"
    rest = "FSDP" if full.ici.data > 1 else "plain data parallelism"
    stays = " and ".join(f"{axis}={full.degree(axis)}" for axis in kept)
    return f"{stays} kept and {rest} over the rest" if stays else f"{rest} over the rest"


def _in_their_place(conversation: Conversation, answer: ReplyBuilder, named: Plan, full: Plan) -> None:
    """An axis that is new may come on top of the others or in their place: the plan without them as well."""
    study = conversation.study
    kept: list[Axis] = [
        axis for axis in named_axes(full) if named.degree(axis) == 1 and axis not in {"data", "replica"}
    ]
    if study.plan is None or len(kept) != 1 or any(study.plan.degree(axis) > 1 for axis in named_axes(named)):
        return
    rest = full.with_ici(**{kept[0]: 1})
    axis, missing = data_axis(study), full.ici.devices // rest.ici.devices
    other = study.with_micro_batch(rest.with_ici(**{axis: getattr(rest.ici, axis) * missing}))
    if not violations(other, study.constraints):
        prediction = expect(study, [other])[0]
        answer.add(f"In place of {kept[0]}={full.degree(kept[0])}: {line(conversation, Candidate(prediction, 0.0))}.")


def _instead(conversation: Conversation, answer: ReplyBuilder, named: Plan) -> None:
    """What another degree of the axis that was named brings, where what runs has the one that was named."""
    axes: list[Axis] = [axis for axis in _AXES if named.degree(axis) > 1]
    if len(axes) != 1 or conversation.study.plan is None:
        return
    axis, now = axes[0], conversation.study.plan
    if (cost := axis_cost(conversation, axis)) is not None:
        answer.add(cost)
    values = [one for values in changed_alone(conversation).values() for one in values if fits(one)]
    others = [one for one in values if one.relative_step_time and one.plan.degree(axis) != now.degree(axis)]
    if others:
        best = min(others, key=lambda one: one.relative_step_time.value if one.relative_step_time else 0.0)
        change = changes_in_words(conversation.study, best, now)
        answer.add(f"Another degree of it, and nothing else, at best: {change}: {expectation(best)}{fit(best)}")
        answer.add_figure(f"{best.plan}: step time", best.relative_step_time)


def explain(
    conversation: Conversation, answer: ReplyBuilder, plan: Plan, *, axis: Axis | None = None, detailed: bool = False
) -> None:
    """What speaks for and against a plan, of an axis first; all of it, with sources, where it is to be ``detailed``."""
    found = conversation.candidate(plan)
    if found is None:
        why_not(conversation, answer, plan)
        return
    answer.focus = plan
    ranked = next((n for n, c in enumerate(conversation.proposals, 1) if c.plan == plan), None)
    proposal = drafted(conversation, found[1], ranked or found[0])
    answer.add(proposal.title, line(conversation, found[1], ranked))
    shown = None if detailed else _FIRST
    answer.add(*(f"+ {reason}" for reason in _of_axis_first(proposal.reasoning, axis)[:shown]))
    answer.add(*(f"- {cost}" for cost in _of_axis_first(proposal.trade_offs, axis)[:shown]))
    if not detailed:
        answer.add('All reasons and costs, with sources: "explain it in detail".')
        return
    answer.add(*(f"= {impact.name}: {impact.statement}" for impact in proposal.impact))
    answer.add(*(f"§ {c.supports} [{c.id}{f', {c.url}' if c.url else ''}]" for c in proposal.citations))
    for impact in proposal.impact:
        answer.add_figure(f"{plan}: {impact.name}", impact.quantity)


def _of_axis_first(sentences: Sequence[str], axis: Axis | None) -> list[str]:
    return sorted(sentences, key=lambda sentence: not sentence.startswith(f"{axis} "))


def compare(conversation: Conversation, answer: ReplyBuilder, plans: list[Plan], asked: str = "") -> None:
    """How they differ and which leads, then each in the order of the ranking; more where what is ``asked`` wants it."""
    detailed = wants_details(asked)
    study = conversation.study
    full = list(dict.fromkeys(whole(conversation, plan) for plan in plans))
    known = [(conversation.candidate(plan), plan) for plan in full]
    ranked = sorted((found for found, _ in known if found), key=lambda found: found[0])
    if len(ranked) > 1:
        answer.focus = ranked[0][1].plan
        answer.add(*([_differences(ranked[0][1].plan, ranked[1][1].plan)] if len(full) == 2 else []))
        answer.add(_leads(conversation, ranked[0][1], ranked[1][1]))
    elif len(full) == 2:
        answer.add(*_faster(conversation, full))
    for rank, candidate in ranked:
        answer.add(
            f"{_named(conversation, candidate.plan)}{line(conversation, candidate)}; {_ranked(conversation, rank)}"
        )
        answer.add_figure(f"{candidate.plan}: step time", candidate.prediction.relative_step_time)
        answer.add(*(f"  - {cost}" for cost in trade_offs(study, candidate.plan) if detailed))
    for found, plan in known:
        if found is None and plan == study.plan:
            answer.add(f"what runs now, {plan}: {figures_of(prediction_of(conversation, plan))}")
        elif found is None:
            why_not(conversation, answer, plan)
    if (detailed or _OF_ORDER.search(asked)) and len(ranked) > 1:
        answer.add(*(what_counts(conversation, candidate) for _, candidate in ranked[:2]))


def _leads(conversation: Conversation, first: Candidate, second: Candidate) -> str:
    """``Proposal 1 leads proposal 2 by 1.5 % of risk-adjusted gain, below the 3 % noise between steps.``"""
    one, other = (_short_name(conversation, candidate.plan) for candidate in (first, second))
    difference = first.score - second.score
    side = "below" if difference < STEP_TIME_VARIATION else "above"
    noise = f"{side} the {format_percent(STEP_TIME_VARIATION, 0)} noise between steps"
    return f"{_capital(one)} leads {other} {lead(difference)}, {noise}."


def _faster(conversation: Conversation, plans: list[Plan]) -> list[str]:
    """Which of two plans has the shorter step, where one of them is not ranked."""
    if any(violations(plan, conversation.study.constraints) for plan in plans):
        return []
    steps = [prediction_of(conversation, plan).step_time for plan in plans]
    known = [(step.value, plan) for step, plan in zip(steps, plans, strict=True) if step is not None]
    if len(known) < 2 or known[0][0] == known[1][0]:
        return []
    (short, one), (long, other) = sorted(known, key=lambda pair: pair[0])
    now = conversation.study.plan
    first, second = ("what runs now" if each == now else _short_name(conversation, each) for each in (one, other))
    less = f"takes {format_percent(1 - short / long)} less time than {second}"
    return [f"{_capital(first)} {less}: {format_seconds(short)} a step against {format_seconds(long)}."]


def _capital(name: str) -> str:
    """A name at the start of a sentence; a plan stays as it is written."""
    return name if "=" in name else f"{name[:1].upper()}{name[1:]}"


def _short_name(conversation: Conversation, plan: Plan) -> str:
    return _named(conversation, plan).removesuffix(", ") or str(plan)


def _differences(one: Plan, other: Plan) -> str:
    """In which degrees and settings two plans differ."""
    named = [(axis, one.degree(axis), other.degree(axis)) for axis in _AXES]
    named += [(name, getattr(one, name), getattr(other, name)) for name in SETTINGS]
    said = [f"{name} ({_written(a)} and {_written(b)})" for name, a, b in named if a != b]
    return f"They differ in {', '.join(said)}."


def _written(value: object) -> str:
    """A setting in a sentence."""
    if isinstance(value, tuple):
        return "+".join(map(str, value)) or "none"
    return "default" if value is None else str(value)


def what_counts(conversation: Conversation, candidate: Candidate) -> str:
    """What the place of a plan in the order is made of."""
    made_of = [f"predicted gain {percent_of(expected_gain(candidate.prediction))}"]
    if candidate.precedent:
        made_of.append(f"precedents {math.expm1(candidate.precedent) * 100:+.1f} %")
    if candidate.prediction.memory is not None:
        made_of.append(f"P(fits) {format_percent(fit_odds(candidate.prediction), 0)}")
    doubt = "the width of its interval" if candidate.makes_fit else "the odds that it is faster"
    subject = _short_name(conversation, candidate.plan)
    return f"{subject} counts {percent_of(candidate.score)}: {', '.join(made_of)}, and {doubt}."


def percent_of(gain: float) -> str:
    """A gain in ``ln(step time)`` as a share of the step, signed."""
    return f"{-math.expm1(-gain) * 100:+.1f} %"


def maxtext(conversation: Conversation, answer: ReplyBuilder, plan: Plan) -> None:
    """The line to paste into a MaxText launcher."""
    study = conversation.study
    full = whole(conversation, plan)
    broken = violations(full, study.constraints)
    if broken:
        raise PlanError("; ".join(violation.sentence for violation in broken), where=str(full))
    answer.focus = full
    prediction = expect(study, [full])[0]
    overrides = drafted(conversation, Candidate(prediction, 0.0), 1).overrides
    answer.add(f"{full} as {TITLES[overrides.stack]}:", *overrides.lines)
    if stays := mesh_that_stays(study, full):
        answer.add(f"as now: {' '.join(stays)}")


def _place(conversation: Conversation, answer: ReplyBuilder, rank: int, candidate: Candidate) -> None:
    answer.add(f"{line(conversation, candidate)}; {_ranked(conversation, rank)}.")
    answer.add_figure(f"{candidate.plan}: step time", candidate.prediction.relative_step_time)
    current = conversation.proposals
    place = next((n for n, c in enumerate(current, 1) if c.plan == candidate.plan), None)
    if place is not None:
        answer.add(f"It is proposal {place}.")
    if current and current[0].plan != candidate.plan:
        answer.add(_behind(current[0], candidate))
    answer.add(*(f"- {cost}" for cost in trade_offs(conversation.study, candidate.plan)[:_FIRST]))


def _behind(first: Candidate, other: Candidate) -> str:
    """By how much a candidate is behind the first proposal; what does not fit is behind whatever it gains."""
    if fits(first.prediction) and not fits(other.prediction):
        return f"It does not fit, and comes after every plan that does: {first.plan} first."
    return f"It is behind {first.plan} {lead(first.score - other.score)}."


def _unranked(conversation: Conversation, plan: Plan) -> str:
    """Why a valid plan is no candidate."""
    study, incumbent = conversation.study, conversation.study.plan
    if incumbent is not None and violations(plan, study.constraints.proven_by(incumbent)):
        return (
            "its degrees must divide the batch and the sequence, which are not on record; state them and it is ranked"
        )
    if incumbent is not None and any(getattr(plan, name) != getattr(incumbent, name) for name in SETTINGS):
        return "plans are ranked with the settings of what runs now"
    if all(plan.degree(axis) == 1 or axis in usual_axes(conversation.study) for axis in _AXES):
        return "the search keeps the best plans alone"
    return "it uses an axis that changes the code of the training step"


def _nearest(conversation: Conversation, answer: ReplyBuilder, plan: Plan) -> None:
    """The best candidate that has the degrees which were named."""
    named: list[Axis] = [axis for axis in _AXES if plan.degree(axis) > 1]
    for rank, candidate in enumerate(conversation.revised.ranked.candidates, 1):
        if named and all(candidate.plan.degree(axis) == plan.degree(axis) for axis in named):
            answer.add(f"The best valid plan with {' and '.join(f'{axis}={plan.degree(axis)}' for axis in named)}:")
            _place(conversation, answer, rank, candidate)
            answer.focus = candidate.plan
            return
    if named:
        names = " and ".join(NAMES[axis] for axis in named)
        answer.add(f"No valid plan has this degree of {names} here.")


def _named(conversation: Conversation, plan: Plan) -> str:
    return f"proposal {conversation.order.index(plan) + 1}, " if plan in conversation.order else ""


def _ranked(conversation: Conversation, rank: int) -> str:
    return f"rank {rank} of {len(conversation.revised.ranked.candidates)}"
