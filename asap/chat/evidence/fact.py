"""One fact about this run, stated by an engineer or found by the compiler. An opinion has no form here."""

from typing import TYPE_CHECKING, get_args

from pydantic import BaseModel, ConfigDict, Field

from asap.chat.evidence.claims import MEASURED_CLAIMS, RUN_CLAIMS, Claim
from asap.core.units import format_bytes, format_percent
from asap.plans import AXES, Plan
from asap.plans.axes import Axis

if TYPE_CHECKING:
    from asap.compiler.verification import Verification


class StatedFact(BaseModel):
    """One stated fact."""

    model_config = ConfigDict(frozen=True)

    claim: Claim
    plan: Plan | None = Field(default=None, description="the plan that was run, or that runs now")
    value: float | None = Field(
        default=None, description="seconds, fraction of the incumbent's step, bytes, tokens a second, or a count"
    )
    stated: float | None = Field(default=None, description="the number as it was said, where value is worked out of it")
    unit: str | None = Field(default=None, description="of the number as it was said: % slower, % faster, x faster, %")
    about: str | None = Field(default=None, description="what a constraint is about: an axis, batch, sequence, …")
    words: str = Field(description="the sentence of the engineer, or the verdict of the compiler")
    compiled: bool = Field(default=False, description="found by the compiler")
    session: str | None = Field(default=None, description="session of asap optimize that measured it")

    @property
    def origin(self) -> str:
        """Who says so."""
        if self.session is not None:
            return f"measured by session {self.session}"
        return "by the TPU compiler" if self.compiled else "stated by you"

    def __str__(self) -> str:
        subject = f"{self.plan} " if self.plan is not None and self.claim is not Claim.INCUMBENT else ""
        match self.claim:
            case Claim.STEP_TIME:
                text = f"measured {self.value:g} s"
            case Claim.RELATIVE:
                text = f"measured {self.value:.3g} of the step that runs now"
            case Claim.BATCH | Claim.SEQUENCE:
                text = f"{self.claim.value} {self.value:g}"
            case Claim.INCUMBENT:
                text = f"{self.claim.value} {self.plan}"
            case Claim.OUT_OF_MEMORY if self.compiled:
                text = "does not fit"
            case Claim.MFU:
                text = f"{self.claim.value} {format_percent(self.value or 0)}"
            case Claim.HBM_SHARE:
                text = f"{self.claim.value} {format_percent(self.value or 0)}"
            case Claim.HBM_BYTES:
                text = f"HBM in use {format_bytes(self.value or 0)}"
            case Claim.THROUGHPUT:
                text = f"{self.claim.value} {self.value:g}"
            case Claim.CONSTRAINT:
                text = self._constraint
            case _:
                text = self.claim.value
        return f"{subject}{text}"

    @property
    def _constraint(self) -> str:
        if self.about not in AXES:
            return f"constraint: the {self.about} stays as it is"
        return (
            f"constraint: {self.about}={self.value:g} cannot be used"
            if self.value
            else f"constraint: no {self.about} axis"
        )

    def forbids(self, plan: Plan) -> bool:
        """Whether a constraint rules a plan out."""
        axis = next((axis for axis in get_args(Axis) if axis == self.about), None)
        if self.claim is not Claim.CONSTRAINT or axis is None:
            return False
        return plan.degree(axis) == self.value if self.value else plan.degree(axis) > 1

    def supersedes(self, earlier: "StatedFact") -> bool:
        """Whether this takes the place of an earlier fact: the same figure of the same plan, measured again."""
        same = (self.claim, self.plan, self.about) == (earlier.claim, earlier.plan, earlier.about)
        return same and self.claim in {*MEASURED_CLAIMS, *RUN_CLAIMS}


def compiled_evidence(found: "Verification") -> list[StatedFact]:
    """What a verdict of the compiler says of memory; nothing where it gave none."""
    if found.fits is None:
        return []
    claim = Claim.FITS if found.fits else Claim.OUT_OF_MEMORY
    return [StatedFact(claim=claim, plan=found.plan, words=found.verdict, compiled=True)]
