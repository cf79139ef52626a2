"""What a share of a step or of the HBM is called in the charts, and its colour: a variable of ``style.css``."""

from asap.plans.axes import AXES

COMPUTE, MIXED, HBM = "compute", "compute and other", "waits for HBM"
OPAQUE, TRANSFER, HOST = "custom calls without FLOPs", "copies with the host", "host"
BUBBLE, OPTIMIZER, OTHER, IDLE, UNLISTED = "pipeline bubble", "optimizer", "other", "idle", "not listed"
UNKNOWN_AXIS = "collectives"

TIME_COLOURS: dict[str, str] = {
    COMPUTE: "var(--compute)",
    MIXED: "var(--mixed)",
    HBM: "var(--hbm)",
    UNKNOWN_AXIS: "var(--collective)",
    **{f"collectives over {axis}": f"var(--axis-{axis})" for axis in AXES},
    OPAQUE: "var(--opaque)",
    TRANSFER: "var(--transfer)",
    HOST: "var(--host)",
    BUBBLE: "var(--bubble)",
    OPTIMIZER: "var(--optimizer)",
    OTHER: "var(--other)",
    IDLE: "var(--idle)",
    UNLISTED: "var(--unlisted)",
}
"""Kinds of time in the order of the bars."""

MEMORY_COLOURS: dict[str, str] = {
    "parameters": "var(--compute)",
    "gradients": "var(--hbm)",
    "optimizer": "var(--optimizer)",
    "activations": "var(--collective)",
    "attention": "var(--axis-model)",
    "temporaries": "var(--opaque)",
    "collectives": "var(--axis-replica)",
    "in use": "var(--other)",
}
"""Kinds of memory in the order of the bars; a kind that is not here is drawn as the last."""


def collectives_over(axis: str | None) -> str:
    """The kind of time of a collective."""
    return f"collectives over {axis}" if axis else UNKNOWN_AXIS
