"""Numbers that say where they come from."""

from enum import StrEnum

from pydantic import BaseModel, ConfigDict, Field

CHANGE = "change"
"""Unit of a share by which something grows: -0.17 is 17 % less."""


class Provenance(StrEnum):
    """How a number came to be known."""

    MEASURED = "measured"
    COMPILED = "compiled"
    MODELLED = "modelled"
    PRECEDENT = "precedent"
    STATED = "stated"


class Quantity(BaseModel):
    """A value with its unit, its origin and, where there is one, its 90 % interval."""

    model_config = ConfigDict(frozen=True)

    value: float
    unit: str = Field(description="s, bytes, FLOP/s, bytes/s, fraction, tokens/s or 1")
    provenance: Provenance
    source: str = Field(description="the table, file, formula or record behind the value")
    low: float | None = Field(default=None, description="lower end of the 90 % interval")
    high: float | None = Field(default=None, description="upper end of the 90 % interval")
