"""The settings under which a figure was measured, where they are not those of now: "41 GiB at mbs 2"."""

import re
from collections.abc import Sequence

from asap.chat.understanding.quantities.amounts import Amount
from asap.chat.understanding.quantities.blanked import blanked
from asap.chat.understanding.quantities.changes import Change, change_in, is_of_settings, plan_settings
from asap.chat.understanding.references.partial_plan import filled
from asap.chat.understanding.references.references import References
from asap.chat.understanding.statements.outcomes import happened, outcome_in
from asap.plans import Plan
from asap.plans.plan import SETTINGS
from asap.plans.prose import plan_spans, without_plans
from asap.study.study import Study

COUNTS = {"", "x", "microbatches", "steps"}
"""Units of a number that sets something; the others are of what was measured."""
_MEASURED = {"s", "%", "GiB", "GB", "tokens/s", "tokens/s/chip", "FLOP/s"}
_RUNS_SO = re.compile(
    r"\b(?:we|i) (?:now |currently |always )?(?:use|run|have|train(?: with)?|are (?:on|at)) (?:an? )?"
    r"(?:mbs|micro|remat|full|selective)"
    r"|\b(?:mbs|micro[- ]?batch\w*(?: size)?|remat\w*)\s+(?:is|was)\s+"
    r"(?:\d+\b(?!\s*(?:%|(?:x|ms|s)\b)|[.,]\d)|full|selective|minimal|off)",
    re.I,
)
"""Says how the run is set, whatever else it reports."""


def plan_under_conditions(text: str, amounts: Sequence[Amount], refs: References, study: Study) -> Plan | None:
    """The plan that a report is of where it names settings beside a figure or an outcome; ``None`` if it names none.

    Args:
        text: a clause, no question.
        amounts: its amounts.
        refs: the plans in it; settings that stand beside no plan are of what runs now.
        study: the run.
    """
    base = refs.plans[0] if refs.plans else study.plan
    if base is None or not reports(text, amounts) or len(refs.plans) > 1 or _RUNS_SO.search(text):
        return None
    bare = blanked(text, [(start, end) for start, end, _ in plan_spans(text)])
    change, _ = change_in(bare, [one for one in amounts if one.unit in COUNTS])
    stated = _stated(refs.settings)
    if not (is_of_settings(change) or (stated and change == Change())):
        return None
    whole = study.complete(filled(study, base))
    return plan_settings(change, whole, study.experiment.workload.global_batch).model_copy(update=stated)


def reports(text: str, amounts: Sequence[Amount]) -> bool:
    """Whether a clause tells of something that ran: a figure of it, or what became of it."""
    return (has_figure(amounts) and happened(text)) or outcome_in(without_plans(text)) is not None


def has_figure(amounts: Sequence[Amount]) -> bool:
    """Whether one of them may be a figure that was measured."""
    return any(one.unit in _MEASURED for one in amounts)


def _stated(settings: Plan | None) -> dict[str, object]:
    """The settings that are written out: ``remat=full``."""
    if settings is None:
        return {}
    return {name: getattr(settings, name) for name in SETTINGS if name in settings.model_fields_set}
