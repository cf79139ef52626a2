"""Plans that are named in part: settings change what runs, and FSDP takes the devices that named axes leave."""

from asap.answers.inquiry import NOW, Inquiry
from asap.core.errors import PlanError
from asap.plans import Plan
from asap.plans.plan import SETTINGS, Mesh
from asap.plans.stretch import over


def whole(inquiry: Inquiry, name: str) -> str:
    """The name of a plan in full; a rank or ``now`` in front is what the rest changes.

    Raises:
        PlanError: it is malformed.
        NotFoundError: there is no such proposal.
    """
    first, _, rest = name.strip().partition(" ")
    based = first.isdigit() or first.lower() in NOW
    if (based and not rest) or (not based and inquiry.study.plan is None):
        return name
    base = inquiry.plan(first) if based else inquiry.now
    said = Plan.parse(rest if based else name)
    settings = {field: getattr(said, field) for field in SETTINGS if field in said.model_fields_set}
    if said.ici.devices == said.dcn.devices == 1:
        return base.model_copy(update=settings).beside(inquiry.study.plan)
    if said.devices != base.devices and said.ici.data == 1 and said.dcn == Mesh():
        try:
            said = over(said, base.ici.devices)
        except PlanError:
            return name
        return said.model_copy(update={"dcn": base.dcn, **settings}).beside(None)
    return name if not based else said.completed_by(base).beside(None)
