"""What is wrong with the figures of a paragraph: they resolve to nothing, are of another plan, or go the other way."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from asap.agents.guardrails.arithmetic import difference, without_equations
from asap.agents.guardrails.grounding import GroundedValue, matches, nearest
from asap.agents.guardrails.prose.direction import faster_by, stated_direction
from asap.agents.guardrails.prose.figures import UNITLESS, Figure, figures
from asap.agents.guardrails.prose.subjects import PlanTerms, plans_in, sentence_around, subjects
from asap.agents.guardrails.prose.units import COUNT, RATIO, SHARE, measure

_NOWHERE = "no tool of this session returned this figure, and no note that you cite contains it"
_ANOTHER = "it is a figure of another plan"
_REVERSED = "it is the other way round"
_NOT_COMPARED = "no tool of this session compared this plan with what runs now"


@dataclass(frozen=True)
class Setting:
    """What a paragraph is about, and what its words refer to.

    Args:
        about: the plan that it is about.
        incumbent: the plan that runs now.
        ranks: the plans of the proposals by number.
    """

    about: PlanTerms | None = None
    incumbent: PlanTerms | None = None
    ranks: Mapping[int, PlanTerms] = field(default_factory=dict)


@dataclass(frozen=True)
class Fault:
    """Words that do not hold: where, why, and what would be right."""

    start: int
    end: int
    text: str
    why: str
    right: str


def find_faults(prose: str, names: Collection[str], known: Sequence[GroundedValue], setting: Setting) -> list[Fault]:
    """Every figure and direction that does not hold, in order."""
    known = [replace(one, plan=None) if one.plan == setting.incumbent else one for one in known]
    left = without_equations(prose, lambda value, half, unit: _is_known(value, half, unit, known))
    found = figures(left, names)
    mentions = plans_in(prose, setting.ranks)
    places = [(one.start, one.end) for one in found]
    wrong = []
    for figure in found:
        of = subjects((figure.start, figure.end), prose, mentions, places, setting.about)
        fault = _fault(figure, prose, [one for one in known if of is None or one.plan is None or one.plan in of], known)
        wrong += [fault] if fault else []
    wrong += _unsaid(prose, known, mentions, places, setting.about)
    return sorted(wrong, key=lambda fault: fault.start)


def _fault(figure: Figure, prose: str, own: Sequence[GroundedValue], known: Sequence[GroundedValue]) -> Fault | None:
    left, right = sentence_around(prose, figure.start, figure.end)
    sentence = prose[left:right]
    said = None if figure.signed else faster_by(sentence, figure.start - left, figure.end - left)
    found = matches(figure, own)
    if found:
        compared = [one for one in found if one.faster is not None]
        if said is None or len(compared) < len(found) or any(one.faster is said for one in compared):
            return None
        return _of(figure, _REVERSED, "with this plan a step takes " + ("less" if compared[0].faster else "more"))
    less = difference(figure, sentence, own)
    if less is not None:
        return None if said in (None, less) else _of(figure, _REVERSED, "it is " + ("less" if less else "more"))
    if elsewhere := matches(figure, known):
        plan = " ".join(sorted(elsewhere[0].plan or ()))
        return _of(figure, f"{_ANOTHER}: {plan}", "name that plan beside it, or leave it out")
    close = nearest(figure, own)
    return _of(figure, _NOWHERE, f"the nearest that a tool returned is {_shown(close)}" if close else "leave it out")


def _unsaid(
    prose: str,
    known: Sequence[GroundedValue],
    mentions: Sequence[tuple[int, int, PlanTerms]],
    places: Sequence[tuple[int, int]],
    about: PlanTerms | None,
) -> list[Fault]:
    """Sentences without a figure that call a plan faster or slower than it is, or than anything says."""
    wrong, start = [], 0
    while start < len(prose):
        _, end = sentence_around(prose, start, start)
        sentence = prose[start:end]
        stated = None if any(start <= at < end for at, _ in places) else stated_direction(sentence)
        named = {plan for at, _, plan in mentions if start <= at < end}
        here = named or ({about} if about else set())
        if stated and len(here) == 1:
            compared = {one.faster for one in known if one.plan in here and one.faster is not None and not one.bound}
            place = start + stated[0], start + stated[1]
            if compared == {not stated[2]}:
                right = "with this plan a step takes " + ("more" if stated[2] else "less")
                wrong.append(Fault(*place, prose[slice(*place)], _REVERSED, right))
            elif named and not compared and "[" not in sentence:
                right = "what predict or compare says of it"
                wrong.append(Fault(*place, prose[slice(*place)], _NOT_COMPARED, right))
        start = end + 1
    return wrong


def _is_known(value: float, half: float, unit: str | None, known: Sequence[GroundedValue]) -> bool:
    dimension = (measure(unit) or ("",))[0] if unit else ""
    of = (dimension,) if dimension else (*UNITLESS, COUNT, RATIO, SHARE, "tokens/s")
    return any(one.dimension in of and not one.bound and abs(abs(one.value) - value) <= half * 1.0001 for one in known)


def _of(figure: Figure, why: str, right: str) -> Fault:
    return Fault(figure.start, figure.end, figure.text, why, right)


def _shown(known: GroundedValue) -> str:
    number = f"{known.value * 100:.3g} %" if known.dimension == SHARE else f"{known.value:.4g} {known.dimension}"
    return f"{number} ({known.place})"
