"""A fact, on record or refused, that a clause corrects: "it was 9.4 s, not 8.4", "sorry, typo: 9.4 s"."""

import re

from asap.chat.evidence.claims import Claim
from asap.chat.evidence.fact import StatedFact
from asap.chat.understanding.quantities.amounts import Amount, amounts
from asap.chat.understanding.references.references import references, speaks_of_baseline
from asap.chat.understanding.scene import Scene
from asap.chat.understanding.statements.outcomes import outcome_in
from asap.chat.understanding.statements.run_facts import LONGEST_WORDS
from asap.chat.understanding.words.doubt import has
from asap.chat.understanding.words.questions import is_question
from asap.core.text import plain
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


def correction_in(clause: str, scene: Scene) -> tuple[StatedFact, StatedFact] | None:
    """The fact that was wrong, and the right one; raises PlanError where a plan in the clause is malformed."""
    found = amounts(clause)
    new = [amount for amount in found if not amount.before]
    if (other := _of_another_plan(clause, found, scene)) is not None:
        return other
    wrong = _contradicted(found, scene) or _mistaken(clause, found, new, scene)
    if wrong is None or wrong.claim is Claim.RELATIVE or len(new) != 1:
        return None
    if is_question(clause) or has("strong", clause):
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


def _contradicted(found: list[Amount], scene: Scene) -> StatedFact | None:
    """The fact whose number is denied: "not 8.4"."""
    old = [amount for amount in found if amount.before]
    return next((fact for fact in reversed(_correctable(scene)) if any(_is(amount, fact) for amount in old)), None)


def _mistaken(clause: str, found: list[Amount], new: list[Amount], scene: Scene) -> StatedFact | None:
    """The figure that was just refused, else the last step time, where a mistake is owned up to."""
    owned_up = _MISTAKE.search(clause) or (scene.refused and _NO.match(clause))
    if not owned_up or len(new) != 1 or speaks_of_baseline(clause):
        return None
    refs = references(clause, scene.tested, None, None, found)
    known = [fact for fact in _correctable(scene) if new[0].unit in _UNITS.get(fact.claim, set())]
    last = next(reversed(known), None)
    if last is None:
        return None
    return last if not refs.plans or last.plan in refs.plans else None


def _correctable(scene: Scene) -> list[StatedFact]:
    return [fact for fact in (*scene.known, *scene.refused) if not fact.lacks_plan]


def _is(amount: Amount, fact: StatedFact) -> bool:
    return any(number is not None and abs(amount.value - number) < 1e-9 for number in (fact.value, fact.stated))
