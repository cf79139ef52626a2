"""A fact from the arguments of a model's call, checked against the words that it quotes."""

import math

from asap.chat.testimony.stated_value import FIGURES, Unit, stated_value
from asap.chat.understanding.quantities.amounts import amounts, thousands
from asap.chat.understanding.statements.run_facts import LONGEST_WORDS
from asap.core.errors import BadInputError
from asap.core.text import plain
from asap.evidence.claims import Claim
from asap.evidence.fact import StatedFact
from asap.plans import Plan
from asap.plans.validity import require_valid
from asap.study.study import Study

OF_A_PLAN = {Claim.RELATIVE, Claim.OUT_OF_MEMORY, Claim.FITS, Claim.FAILED, Claim.SLOWER, Claim.FASTER, Claim.INCUMBENT}
LONGEST_TOPIC = 40


def stated_fact(
    study: Study, claim: Claim, quote: str, plan: str | None, value: float | None, unit: Unit | None, about: str | None
) -> StatedFact:
    """What a call says, in the units of the record.

    Args:
        study: the run.
        claim: the kind of fact.
        quote: the words that state it.
        plan: the plan it is about; ``None`` for the run itself.
        value: the number as it was said.
        unit: of the number as it was said.
        about: what a constraint holds fixed.

    Raises:
        BadInputError: something is missing, or the number is not in the quote.
        PlanError: the plan is malformed or cannot run here.
    """
    subject = study.complete(Plan.parse(plan)) if plan else None
    if subject is not None:
        require_valid(subject, study.constraints)
    if subject is None and claim in OF_A_PLAN:
        raise BadInputError("needs the plan", where=claim.value, hint="name it, or ask the engineer which one")
    if value is None and claim in FIGURES:
        raise BadInputError("needs the number and its unit", where=claim.value, hint="ask the engineer")
    if claim is Claim.CONSTRAINT and about is None:
        raise BadInputError("needs what it is about", where=claim.value, hint="an axis, batch, sequence, hardware")
    if claim in FIGURES and subject is None and claim not in {Claim.BATCH, Claim.SEQUENCE}:
        subject = study.plan
    known = None if value is None else stated_value(claim, value, unit)
    if value is not None and not _is_said(quote, value, known):
        raise BadInputError(f"{value:g} is not in the quote", where=plain(quote, 80), hint="give the number as said")
    said = {"stated": value, "unit": unit} if known != value else {}
    topic = plain(about, LONGEST_TOPIC) if about and claim is Claim.CONSTRAINT else None
    words = plain(quote, LONGEST_WORDS)
    return StatedFact.model_validate(
        {"claim": claim, "plan": subject, "value": known, "about": topic, "words": words, **said}
    )


def _is_said(quote: str, value: float, known: float | None) -> bool:
    """Whether a number is in the words, as it was said or in the unit of the record."""
    numbers = [number for amount in amounts(quote) for number in (amount.value, thousands(amount))]
    return any(math.isclose(number, one, rel_tol=1e-9) for number in numbers for one in (value, known) if one)
