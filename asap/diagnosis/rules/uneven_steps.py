"""Rule: step times that vary."""

from asap.core.units import format_percent
from asap.diagnosis.diagnosis import Bottleneck, Evidence, Finding
from asap.diagnosis.facts import STEP_TIME_VARIATION, Facts


def uneven_steps(facts: Facts) -> Finding | None:
    """Steps that vary more than undisturbed runs do: a straggler, or something beside the training."""
    kpis = facts.profile.kpis
    if not kpis.step_time_s or not kpis.step_time_stddev_s or (kpis.steps or 0) < 2:
        return None
    variation = kpis.step_time_stddev_s / kpis.step_time_s
    if variation <= STEP_TIME_VARIATION:
        return None
    compare = "compare hosts for a straggler, and " if (facts.profile.devices or 1) > 1 else ""
    usual = format_percent(STEP_TIME_VARIATION, 0)
    return Finding(
        rule="uneven_steps",
        kind=Bottleneck.IDLE,
        statement=f"step times vary by {format_percent(variation)}; undisturbed runs stay below {usual}.",
        evidence=(Evidence(fact="coefficient of variation", quantity=facts.fraction(variation, "step times")),),
        advice=f"{compare}look for checkpoints or evaluation inside the window",
    )
