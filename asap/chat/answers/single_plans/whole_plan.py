"""A plan that was named in part, as it would run here."""

from asap.chat.conversation import Conversation
from asap.plans import Plan
from asap.prediction.predict_study import usual_axes
from asap.study.study import Study


def whole(conversation: Conversation, plan: Plan) -> Plan:
    """A plan as it would run here: data parallelism over the devices that it leaves, settings of what runs now."""
    study = conversation.study
    return study.complete(_filled(study, plan))


def _filled(study: Study, plan: Plan) -> Plan:
    """A plan of which some degrees were named, with the run's kind of data parallelism over the rest of the devices."""
    named, devices = plan.ici.devices, study.constraints.devices_per_slice
    if devices is None or plan.ici.data > 1 or plan.ici.replica > 1 or named >= devices or devices % named:
        return plan
    sharded = "data" in usual_axes(study)
    return plan.with_ici(**{"data" if sharded else "replica": devices // named})
