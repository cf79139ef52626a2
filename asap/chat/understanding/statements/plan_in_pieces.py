"""A plan whose degrees stand apart around one figure, as one plan: "tp2 pp4 ran 5.2 s, ep4"."""

from asap.chat.understanding.quantities.amounts import amounts
from asap.chat.understanding.quantities.blanked import blanked
from asap.chat.understanding.references.partial_plan import named_axes
from asap.plans.prose import plan_spans


def with_plan_in_one(text: str) -> str:
    """The text with all degrees at the first of them, where no axis is named twice and one time was measured.

    Raises:
        PlanError: a plan in it is malformed.
    """
    spans = plan_spans(text)
    axes = [axis for _, _, plan in spans for axis in named_axes(plan)]
    if len(spans) < 2 or len(set(axes)) != len(axes) or not all(named_axes(plan) for _, _, plan in spans):
        return text
    places = [(start, end) for start, end, _ in spans]
    if sum(amount.unit == "s" for amount in amounts(blanked(text, places))) != 1:
        return text
    whole = " ".join(text[start:end] for start, end in places)
    (start, end), *others = places
    return f"{text[:start]}{whole}{blanked(text, others)[end:]}"
