"""What an axis of the plan that runs costs: the collectives of it that nothing hides."""

from asap.chat.conversation import Conversation
from asap.core.units import format_percent
from asap.evidence.anchor import modelled_now
from asap.plans.axes import Axis


def axis_cost(conversation: Conversation, axis: Axis) -> str | None:
    """A sentence on it; ``None`` where the step is not modelled by part."""
    now = modelled_now(conversation.study)
    if now is None or now.step_time is None:
        return None
    shares = {part.name: part.exposed_s / now.step_time.value for part in now.parts if part.axis == axis}
    if not shares:
        return None
    said = ", ".join(f"{name} {format_percent(share, 0)}" for name, share in shares.items())
    whole = format_percent(sum(shares.values()), 0)
    return f"Collectives of {axis} that nothing hides take {whole} of the step ({said}; modelled)."
