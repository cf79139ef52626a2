"""Rule: an idle device."""

from asap.core.units import format_percent
from asap.diagnosis.diagnosis import Bottleneck, Evidence, Finding
from asap.diagnosis.facts import STEP_TIME_VARIATION, Facts, spelled


def idle_device(facts: Facts) -> Finding | None:
    """Time in which the device does nothing."""
    idle = facts.shares.idle
    if idle is None or idle < STEP_TIME_VARIATION:
        return None
    return Finding(
        rule="idle_device",
        kind=Bottleneck.IDLE,
        statement=f"the device is idle for {format_percent(idle)} of the time.",
        share=idle,
        evidence=(Evidence(fact="idle", quantity=facts.fraction(idle, "device duty cycle")),),
        advice=f"look at what the host does meanwhile: {spelled(host)}"
        if (host := facts.profile.host)
        else "look for host work, checkpoints or stragglers between steps",
    )
