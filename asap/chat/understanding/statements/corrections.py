"""A fact, on record or refused, that a clause corrects: "it was 9.4 s, not 8.4", "sorry, typo: 9.4 s"."""

import re

from asap.chat.understanding.quantities.amounts import Amount, amounts
from asap.chat.understanding.references.meant import plan_meant
from asap.chat.understanding.references.references import references, speaks_of_baseline
from asap.chat.understanding.scene import Scene
from asap.chat.understanding.statements.outcomes import outcome_in
from asap.chat.understanding.statements.run_facts import LONGEST_WORDS
from asap.chat.understanding.words.doubt import has
from asap.chat.understanding.words.questions import is_question
from asap.core.text import plain
from asap.evidence.claims import Claim
from asap.evidence.fact import StatedFact
from asap.plans.prose import without_plans

_UNITS: dict[Claim, set[str]] = {
    Claim.STEP_TIME: {"s", ""}, Claim.MFU: {"%", ""}, Claim.HBM_SHARE: {"%", ""}, Claim.HBM_BYTES: {"GiB", "GB", ""},
    Claim.THROUGHPUT: {"tokens/s", "tokens/s/chip", ""},
}  # fmt: skip
"""Units in which a correction may be written; without one it is in that of the fact."""
_NO = re.compile(r"\W*(?:no|nope|nah)\b", re.I)
_MISTAKE = re.compile(
    r"\b(?:sorry|typo|correction|misread|mistyped|i meant|mistake|wrong number|actually|oops|my bad"
    r"|(?:scrap|scratch|strike) (?:that|it))\b",
    re.I,
)
_LONE = re.compile(r"(?:(?!proposal|option|number|plan)[a-z]+|\W)*\d\W*", re.I)
"""One digit, which may be a figure as well: "sorry, 3"."""
_INSTEAD = re.compile(
    r"\W*(?:(?:(?:no|nope|nah|wait|(?:hang|hold) on|err?|i mean|rather)\W+)+(?:(?:that|it|make|read|should|is|was|be|as"
    r"|(?:it|that)'s|have|been)\s+)*|(?:(?:make|read)\s+(?:that|it)|(?:(?:that|it)\s+)?should\s+(?:be|have been|read))"
    r"\s+(?:as\s+)?)(?:about\s+|more like\s+)?\d[\d.,]*\s*\S{0,10}\W*",
    re.I,
)
"""Puts another figure in the place of the last, and says no more: "no wait, that is 2.59", "make that 2.59"."""


def correction_in(clause: str, scene: Scene) -> tuple[StatedFact, StatedFact] | None:
    """The fact that was wrong, and the right one; raises PlanError where a plan in the clause is malformed."""
    found = amounts(clause)
    new = [amount for amount in found if not amount.before]
    other = _of_another_plan(clause, found, scene) or _of_the_plan_meant(clause, scene)
    if other is not None:
        return other
    if not scene.latest and plan_meant(clause, scene.opening, scene.study.plan) is not None:
        return None
    wrong = _contradicted(found, scene) or _mistaken(clause, found, new, scene)
    if wrong is None or wrong.claim is Claim.RELATIVE or len(new) != 1:
        return None
    if is_question(clause) or has("strong", clause):
        return None
    if not new[0].before and _is(new[0], wrong):
        return None
    number = new[0].value / 100 if new[0].unit == "%" and not wrong.stated else new[0].value
    fields = {"value": number, "words": plain(clause, LONGEST_WORDS)}
    if wrong.value and wrong.stated:
        fields |= {"value": number * wrong.value / wrong.stated, "stated": number}
    return wrong, wrong.model_copy(update=fields)


def _of_another_plan(clause: str, found: list[Amount], scene: Scene) -> tuple[StatedFact, StatedFact] | None:
    """The outcome that was stated last, and the same of the plan that was meant: "sorry, I meant proposal 1 crashed".

    Its number is of the list that the conversation began with, as that outcome may have changed the order.
    """
    last = next(reversed(scene.known), None)
    if last is None or not _MISTAKE.search(clause) or outcome_in(without_plans(clause)) is not last.claim:
        return None
    plans = references(clause, scene.opening, None, scene.study.plan, found).plans
    if len(plans) != 1 or plans[0].devices == 1:
        return None
    return last, last.model_copy(update={"plan": plans[0], "words": plain(clause, LONGEST_WORDS)})


def _of_the_plan_meant(clause: str, scene: Scene) -> tuple[StatedFact, StatedFact] | None:
    """The one fact that the last message stated of a plan, of the plan that was meant: "sorry, 3 not 2"."""
    meant = plan_meant(clause, scene.opening, scene.study.plan)
    stated = [fact for fact in scene.latest if fact.plan is not None and fact.claim is not Claim.INCUMBENT]
    if meant is None or len(stated) != 1 or stated[0].plan == meant:
        return None
    if stated[0].value is not None and _LONE.fullmatch(clause):
        return None
    return stated[0], stated[0].model_copy(update={"plan": meant, "words": plain(clause, LONGEST_WORDS)})


def _contradicted(found: list[Amount], scene: Scene) -> StatedFact | None:
    """The fact whose number is denied: "not 8.4"."""
    old = [amount for amount in found if amount.before]
    return next((fact for fact in reversed(_correctable(scene)) if any(_is(amount, fact) for amount in old)), None)


def _mistaken(clause: str, found: list[Amount], new: list[Amount], scene: Scene) -> StatedFact | None:
    """The figure that was just refused, else the last step time, where a mistake is owned up to."""
    owned_up = _MISTAKE.search(clause) or (scene.refused and _NO.match(clause))
    owned_up = owned_up or (scene.latest and _INSTEAD.fullmatch(clause))
    if not owned_up or len(new) != 1 or speaks_of_baseline(clause):
        return None
    refs = references(clause, scene.tested, None, None, found)
    known = [fact for fact in _correctable(scene) if new[0].unit in _UNITS.get(fact.claim, set())]
    last = next(reversed([fact for fact in known if fact in scene.latest] or known), None)
    if last is None:
        return None
    return last if not refs.plans or last.plan in refs.plans else None


def _correctable(scene: Scene) -> list[StatedFact]:
    return [fact for fact in (*scene.known, *scene.refused) if not fact.lacks_plan]


def _is(amount: Amount, fact: StatedFact) -> bool:
    return any(number is not None and abs(amount.value - number) < 1e-9 for number in (fact.value, fact.stated))
