"""One fact about this run, stated by an engineer or found by the compiler, and its place in a worklog."""

import re
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from asap.core.numbers import as_setting
from asap.core.units import counted, exact, format_bytes, format_change, format_percent, format_rate, format_seconds
from asap.evidence.readings import leaves_node
from asap.plans import AXES, Plan, Remat
from asap.plans.axes import Axis


class Claim(StrEnum):
    """What is stated."""

    OUT_OF_MEMORY = "ran out of memory"
    FITS = "fits into memory"
    FAILED = "failed"
    SLOWER = "was slower"
    FASTER = "was faster"
    STEP_TIME = "measured step time"
    RELATIVE = "measured step time against what runs"
    BATCH = "global batch"
    SEQUENCE = "sequence length"
    NETWORK = "network between nodes"
    INCUMBENT = "plan that runs"
    MFU = "measured MFU"
    THROUGHPUT = "measured tokens per second"
    HBM_SHARE = "HBM in use"
    HBM_BYTES = "HBM in use, bytes"
    CONSTRAINT = "constraint"


EXCLUDING_CLAIMS = {Claim.OUT_OF_MEMORY, Claim.FAILED, Claim.SLOWER}
"""A plan of which this is known is not proposed again."""

RUN_CLAIMS = {Claim.BATCH, Claim.SEQUENCE, Claim.NETWORK, Claim.INCUMBENT}
"""Facts of the run itself."""

MEASURED_CLAIMS = {Claim.STEP_TIME, Claim.RELATIVE, Claim.MFU, Claim.THROUGHPUT, Claim.HBM_SHARE, Claim.HBM_BYTES}
"""Measurements: a later one of the same plan takes the place of an earlier one."""


Origin = Literal["typed", "piped", "tool", "compiler", "session"]
"""Where a fact comes from: a command that was typed or piped in, a tool, the compiler, ``asap optimize``."""
ORIGINS: dict[Origin, str] = {
    "typed": "stated by you",
    "piped": "piped in as a command",
    "tool": "stated through a tool",
    "compiler": "by the TPU compiler",
    "session": "measured by a session",
}
MESH, NO_OFFLOAD, HBM, MICRO_BATCH = "mesh", "no offload", "HBM", "sequences in a microbatch"
NO_GRAPHS = "no CUDA graphs"
"""Constraints that are of no single axis."""
ABSENT: dict[str, tuple[str, Callable[[Plan], bool]]] = {
    NO_OFFLOAD: ("nothing is kept in host memory", lambda plan: bool(plan.offload) or plan.moves_activations),
    "no accumulation": (
        "no gradient accumulation", lambda plan: (plan.microbatches or 1) > 1 and plan.degree("stage") == 1
    ),
    "no virtual stages": ("no virtual pipeline stages", lambda plan: (plan.pipeline_repeats or 1) > 1),
    NO_GRAPHS: ("no CUDA graphs", lambda plan: False),
    "no recomputation": ("nothing is recomputed", lambda plan: plan.remat not in {None, Remat.NONE}),
}  # fmt: skip
"""Constraints that rule a technique out: in words, and whether a plan uses it. Microbatches that fill a pipeline
accumulate nothing beside it."""


class StatedFact(BaseModel):
    """One stated fact."""

    model_config = ConfigDict(frozen=True)

    claim: Claim
    plan: Plan | None = Field(default=None, description="the plan that was run, or that runs now")
    value: float | None = Field(
        default=None,
        description="seconds, fraction of the incumbent's step, bytes, bytes/s or tokens a second, or a count",
    )
    stated: float | None = Field(default=None, description="the number as it was said, where value is worked out of it")
    unit: str | None = Field(default=None, description="of the number as it was said: % slower, % faster, x faster, %")
    about: str | None = Field(default=None, description="what a constraint is about: an axis, batch, sequence, …")
    bound: Literal["least", "most", "inside"] | None = Field(
        default=None,
        description="a constraint's value is the least or the most that the degree may be, or the devices of a node"
        " inside which the axis stays; none where it stays inside a slice",
    )
    keeps: Plan | None = Field(default=None, description="the plan whose setting a constraint keeps")
    words: str = Field(description="the sentence of the engineer, or the verdict of the compiler")
    origin: Origin = Field(default="typed", description="who says so")
    session: str | None = Field(default=None, description="session of asap optimize that measured it")

    @model_validator(mode="before")
    @classmethod
    def _read_former(cls, value: Any) -> Any:
        """Read facts of earlier sessions, which said only whether the compiler found them."""
        if not isinstance(value, dict) or "origin" in value:
            return value
        found: dict[str, Any] = dict(value)
        found["origin"] = "compiler" if found.pop("compiled", False) else "session" if found.get("session") else "typed"
        return found

    @property
    def said_by(self) -> str:
        """Who says so, in words."""
        return f"measured by session {self.session}" if self.session is not None else ORIGINS[self.origin]

    @property
    def compiled(self) -> bool:
        """Whether the compiler found it."""
        return self.origin == "compiler"

    def __str__(self) -> str:
        subject = f"{self.plan} " if self.plan is not None and self.claim is not Claim.INCUMBENT else ""
        match self.claim:
            case Claim.STEP_TIME:
                text = f"measured {format_seconds(self.value or 0)}"
            case Claim.RELATIVE:
                text = f"measured {format_change(self.value or 0)} against the step that runs now"
            case Claim.BATCH | Claim.SEQUENCE | Claim.THROUGHPUT:
                text = f"{self.claim.value} {exact(self.value or 0)}"
            case Claim.NETWORK:
                text = f"{self.claim.value} {format_rate(self.value or 0, 'B')}/s a device"
            case Claim.INCUMBENT:
                text = f"{self.claim.value} {self.plan}"
            case Claim.OUT_OF_MEMORY if self.compiled:
                text = "does not fit"
            case Claim.MFU | Claim.HBM_SHARE:
                text = f"{self.claim.value} {format_percent(self.value or 0)}"
            case Claim.HBM_BYTES:
                text = f"HBM in use {format_bytes(self.value or 0)}"
            case Claim.CONSTRAINT:
                text = self._constraint
            case _:
                text = self.claim.value
        if self.claim in MEASURED_CLAIMS and self.session is None:  # who states 2.1 s does not state 2.10 s
            text = re.sub(r"\.0+ |(?<=\.[1-9])0 ", " ", text)
        return f"{subject}{text}"

    @property
    def _constraint(self) -> str:
        if self.keeps is not None and self.about in AXES:
            return f"constraint: {self.about}={_setting(self.keeps, self.about)} stays"
        if self.about in ABSENT:
            return f"constraint: {ABSENT[self.about][0]}"
        if self.about == HBM:
            return f"constraint: HBM is at most {format_bytes(self.value or 0)} a chip"
        if self.about == MICRO_BATCH:
            size = f"{f'at {self.bound} ' if self.bound else ''}{counted(round(self.stated or 0), 'sequence')}"
            return f"constraint: a microbatch has {size} of each data rank"
        if self.about not in AXES:
            kept = "stay as they are" if self.about == "microbatches" else "stays as it is"
            return f"constraint: the {self.about} {kept}"
        if self.bound == "inside":
            return f"constraint: {self.about} stays inside a {'node' if self.value else 'slice'}"
        if self.bound is not None:
            return f"constraint: {self.about} is at {self.bound} {exact(self.value or 0)}"
        excluded = f"{self.about}={as_setting(self.value)} cannot be used" if self.value else f"no {self.about} axis"
        return f"constraint: {excluded}"

    def forbids(self, plan: Plan, held_bytes: float | None = None) -> bool:
        """Whether a constraint rules out a plan that takes so much HBM on the fullest chip."""
        if self.claim is not Claim.CONSTRAINT:
            return False
        if self.about == HBM:
            return held_bytes is not None and self.value is not None and held_bytes > self.value
        if self.about == MICRO_BATCH and self.value is not None:
            parts = plan.batch_shards * (plan.microbatches or 1)
            forbidden = {"most": parts < self.value, "least": parts > self.value}
            return forbidden.get(self.bound or "", parts != self.value)
        if self.keeps is not None:
            return _setting(plan, self.about) != _setting(self.keeps, self.about)
        if self.about in ABSENT:
            return ABSENT[self.about][1](plan)
        axis = next((axis for axis in get_args(Axis) if axis == self.about), None)
        if axis is None:
            return False
        if self.bound == "inside":
            return leaves_node(plan, axis, int(self.value) if self.value else None)
        if self.bound is not None and self.value is not None:
            below = plan.degree(axis) < self.value
            return below if self.bound == "least" else plan.degree(axis) > self.value
        return plan.degree(axis) == self.value if self.value else plan.degree(axis) > 1

    def supersedes(self, earlier: "StatedFact") -> bool:
        """Whether this takes the place of an earlier fact: the same figure of the same plan, measured again, or that a
        plan ran out of memory, where the run now has another batch or sequence."""
        if self.claim in (Claim.BATCH, Claim.SEQUENCE) and earlier.claim is Claim.OUT_OF_MEMORY:
            return True
        same = (self.claim, self.plan, self.about) == (earlier.claim, earlier.plan, earlier.about)
        return same and (self.claim in {*MEASURED_CLAIMS, *RUN_CLAIMS} or self.about == HBM)


def _setting(plan: Plan, about: str | None) -> str:
    """What a constraint keeps of a plan: the degree of an axis, the mesh, or a setting beside it."""
    axis = next((axis for axis in get_args(Axis) if axis == about), None)
    if axis is not None:
        return str(plan.degree(axis))
    return f"{plan.ici} {plan.dcn}" if about == MESH else str(getattr(plan, about or ""))


EVIDENCE, RETRACTION = "evidence", "retraction"
"""Events of notes: a fact is recorded, a fact is taken back."""


def recorded_facts(notes: Iterable[Mapping[str, Any]]) -> list[StatedFact]:
    """The facts that hold after all notes, the oldest first; a later measurement takes the place of an earlier one.

    Args:
        notes: payloads of notes, in their order.
    """
    found: list[StatedFact] = []
    for note in notes:
        if (event := note.get("event")) not in (EVIDENCE, RETRACTION):
            continue
        if (fact := _fact(note.get("evidence" if event == EVIDENCE else "fact"))) is None:
            continue
        found = [one for one in found if one != fact and not (event == EVIDENCE and fact.supersedes(one))]
        found += [fact] if event == EVIDENCE else []
    return found


def _fact(value: Any) -> StatedFact | None:
    """A fact of the worklog; ``None`` where the record of it is damaged."""
    try:
        return StatedFact.model_validate(value)
    except ValidationError:
        return None
