"""Each rule looks at the facts and returns one finding, or ``None``."""

from asap.diagnosis.rules.communication_bound import communication_bound
from asap.diagnosis.rules.compute_bound import compute_bound
from asap.diagnosis.rules.hbm_bound import hbm_bound
from asap.diagnosis.rules.host_bound import host_bound
from asap.diagnosis.rules.host_transfer_bound import host_transfer_bound
from asap.diagnosis.rules.idle_device import idle_device
from asap.diagnosis.rules.memory_capacity import memory_capacity
from asap.diagnosis.rules.opaque_operations import opaque_operations
from asap.diagnosis.rules.uneven_steps import uneven_steps
from asap.diagnosis.rules.waits_for_ranks import pipeline_bubble, waits_for_ranks

RULES = (
    compute_bound,
    hbm_bound,
    communication_bound,
    host_transfer_bound,
    host_bound,
    idle_device,
    uneven_steps,
    waits_for_ranks,
    pipeline_bubble,
    memory_capacity,
    opaque_operations,
)
