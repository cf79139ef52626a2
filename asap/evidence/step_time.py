"""The step time of what runs now, as far as it is known, and figures that were stated."""

from collections.abc import Sequence

from asap.core.provenance import Provenance, Quantity
from asap.evidence.claims import Claim
from asap.evidence.fact import StatedFact
from asap.study.study import Study

WORKED_OUT = "worked out from the measured step of another plan"
"""Source of a step time of what runs now that nobody measured: predictions start from it, and no answer quotes it."""


def current_step_time(study: Study, evidence: Sequence[StatedFact] = ()) -> Quantity | None:
    """Step time of the plan that runs now: stated, else measured by the profile."""
    for item in reversed(evidence):
        if item.claim is Claim.STEP_TIME and item.plan == study.plan and item.value:
            return stated(item, item.value, "s")
    profile = study.profile
    if profile is None or profile.kpis.step_time_s is None or profile.source == WORKED_OUT:
        return None
    kind = Provenance.STATED if profile.stated else Provenance.MEASURED
    return Quantity(value=profile.kpis.step_time_s, unit="s", provenance=kind, source=profile.source)


def stated(item: StatedFact, value: float, unit: str) -> Quantity:
    """A figure of the engineer, which has no interval."""
    return Quantity(
        value=value,
        unit=unit,
        provenance=Provenance.STATED,
        source=f"the engineer: {item.words}",
        low=value,
        high=value,
    )
