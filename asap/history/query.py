"""What is asked of the history: the present run, as far as it is known."""

from pydantic import BaseModel, ConfigDict, Field, PositiveFloat, PositiveInt

from asap.diagnosis import Bottleneck
from asap.plans import Plan
from asap.profiles.profile import Bound

NEUTRAL = 0.5
"""The similarity of two runs about which nothing is known."""


class HistoryQuery(BaseModel):
    """The present run, as far as it is known."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    bottleneck: Bottleneck | None = None
    bound: Bound | None = Field(default=None, description="what most of the time is bound by, under the roofline")
    chip: str | None = Field(default=None, description="key or alias of asap/hardware")
    devices: PositiveInt | None = None
    parameters: PositiveFloat | None = Field(default=None, description="of the model, with all experts")
    plan: Plan | None = Field(default=None, description="the current one")
    text: str = ""

    @property
    def scale(self) -> int | None:
        """Devices, as said or as the plan has them."""
        return self.devices or (self.plan.devices if self.plan else None)
