"""A team's own measured runs against their predictions, as they are kept beside its experiments."""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from asap.core.errors import ConfigError
from asap.core.files import home, write_atomically
from asap.core.stores import warn_of_store
from asap.hardware.slices import Slice
from asap.models import Architecture, Workload
from asap.prediction.step_model.groups import framework_class, precision_class


@dataclass(frozen=True)
class Likeness:
    """What decides how much two runs of a team have in common.

    Args:
        stack: chip and framework.
        setting: model, devices, batch, sequence and precision, as a digest.
    """

    stack: str
    setting: str

    @classmethod
    def of(cls, architecture: Architecture, workload: Workload, hardware: Slice) -> "Likeness":
        """Of a run, whatever its plan."""
        stack = f"{hardware.chip.name}, {framework_class(workload.framework) or 'other'}"
        shapes = architecture.model_dump(mode="json", exclude={"name"}, exclude_defaults=True)
        sizes = hardware.devices, workload.global_batch, workload.sequence_length, precision_class(workload.precision)
        text = json.dumps([stack, shapes, *sizes], sort_keys=True)
        return cls(stack, hashlib.sha256(text.encode()).hexdigest()[:16])


class OwnRun(BaseModel):
    """One measured run of a team against its prediction."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    origin: str = Field(description="the file or session that it was read from")
    stack: str = Field(description="chip and framework")
    setting: str = Field(description="digest of model, devices, batch, sequence and precision")
    step_time_s: float
    predicted_s: float
    residual: float = Field(description="ln(measured / predicted), in half-widths of the 90 % interval")
    how: str = Field(default="", description="how the step time came about, where it is not that of a whole run")


class OwnRuns(BaseModel):
    """A team's measured runs, as they are kept."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    schema_: Literal["asap.own_runs/1"] = Field(default="asap.own_runs/1", alias="schema")
    calibrated: str = Field(description="date of the calibration that predicted them")
    runs: tuple[OwnRun, ...] = ()


def load_own_runs() -> OwnRuns | None:
    """The team's runs on record; ``None`` if there are none.

    Raises:
        ConfigError: the file cannot be read.
    """
    path = _path()
    try:
        return OwnRuns.model_validate_json(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, ValidationError) as error:
        hint = "asap accuracy calibrate --forget removes it"
        raise ConfigError("holds no runs that can be read", where=str(path), hint=hint) from error


def usable_own_runs() -> OwnRuns | None:
    """The team's runs; ``None``, with a warning, where they cannot be read: a prediction stands without them."""
    try:
        return load_own_runs()
    except ConfigError as error:
        warn_of_store(f"your own runs do not correct the prediction: {error}")
        return None


def keep_own_runs(found: OwnRuns) -> None:
    """Write the team's runs down.

    Raises:
        BadInputError: the folder cannot be written.
    """
    write_atomically(_path(), found.model_dump_json(by_alias=True, indent=1) + "\n")


def forget_own_runs() -> bool:
    """Remove the team's runs; whether there were any."""
    path = _path()
    known = path.exists()
    path.unlink(missing_ok=True)
    return known


def _path() -> Path:
    return home() / "own_runs.json"
