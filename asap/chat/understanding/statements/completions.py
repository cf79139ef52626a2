"""The plan of a fact that was stated without one: "it OOMed" · "Which plan?" · "the first one"."""

from asap.chat.understanding.quantities.amounts import amounts
from asap.chat.understanding.references.references import references, speaks_of_baseline
from asap.chat.understanding.scene import Scene
from asap.chat.understanding.statements.clauses import checked
from asap.chat.understanding.statements.statements import Statements
from asap.chat.understanding.words.questions import is_question
from asap.evidence.fact import StatedFact

_LONGEST = 5
"""Words of an answer that names a plan and says no more."""
_OURS = {"ours", "mine", "now", "the baseline", "current", "the current"}


def completed_in(text: str, scene: Scene) -> Statements | None:
    """What was stated a moment ago, of the plan that is named now; ``None`` where a line is no answer to that.

    Raises:
        PlanError: a plan in it is malformed.
    """
    open_facts = [fact for fact in scene.refused if fact.lacks_plan]
    said = text.lower().strip(" .,!")
    of_now = speaks_of_baseline(text) or said in _OURS
    if not open_facts or len(text.split()) > _LONGEST or (is_question(text) and not of_now):
        return None
    found = amounts(text)
    if any(amount.unit for amount in found):
        return None
    now = scene.study.plan
    named = [now] if of_now else references(text, scene.tested, None, now, found, "all").plans
    if len(named) != 1 or named[0] is None:
        return None
    items = [checked(fact.model_copy(update={"plan": named[0]}), scene.study) for fact in open_facts]
    return Statements(
        evidence=tuple(item for item in items if isinstance(item, StatedFact)),
        complaints=tuple(item for item in items if isinstance(item, str)),
    )
