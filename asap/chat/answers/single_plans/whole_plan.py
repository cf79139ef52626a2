"""A plan that was named in part, as it would run here."""

from asap.chat.conversation import Conversation
from asap.plans import Plan


def whole(conversation: Conversation, plan: Plan) -> Plan:
    """A plan as it would run here: FSDP over the devices that it leaves, settings of what runs now."""
    study = conversation.study
    return _filled(plan, study.constraints.devices_per_slice).completed_by(study.plan)


def _filled(plan: Plan, devices: int | None) -> Plan:
    """A plan of which some degrees were named, with FSDP over the rest of the devices."""
    named = plan.ici.devices
    if devices is None or plan.ici.data > 1 or plan.ici.replica > 1 or named >= devices or devices % named:
        return plan
    return plan.with_ici(data=devices // named)
