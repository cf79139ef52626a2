"""A team's own measured runs against their predictions, as they are kept beside its experiments."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from asap.core.errors import ConfigError
from asap.core.files import home, write_atomically
from asap.core.stores import warn_of_store
from asap.core.units import format_percent
from asap.hardware.slices import Slice
from asap.models import Architecture, Workload
from asap.prediction.prediction import OWN_RUNS
from asap.prediction.step_model.groups import framework_class, precision_class
from asap.prediction.uncertainty.residual_kernel import PRIOR_WEIGHT


@dataclass(frozen=True)
class Likeness:
    """What decides how much two runs of a team have in common.

    Args:
        stack: chip and framework.
        model: and the shapes of the model besides, as a digest.
        setting: and devices, batch, sequence and precision besides, as a digest.
    """

    stack: str
    model: str
    setting: str

    @classmethod
    def of(cls, architecture: Architecture, workload: Workload, hardware: Slice) -> "Likeness":
        """Of a run, whatever its plan."""
        stack = f"{hardware.chip.name}, {framework_class(workload.framework) or 'other'}"
        shapes = architecture.model_dump(mode="json", exclude={"name"}, exclude_defaults=True)
        sizes = hardware.devices, workload.global_batch, workload.sequence_length, precision_class(workload.precision)
        return cls(stack, _digest(stack, shapes), _digest(stack, shapes, *sizes))


def _digest(*parts: object) -> str:
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


class OwnRun(BaseModel):
    """One measured run of a team against its prediction."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    origin: str = Field(description="the file or session that it was read from")
    stack: str = Field(description="chip and framework")
    model: str = Field(description="digest of chip, framework and the shapes of the model")
    setting: str = Field(description="the same with devices, batch, sequence and precision")
    step_time_s: float
    predicted_s: float
    residual: float = Field(description="ln(measured / predicted), in half-widths of the 90 % interval")
    how: str = Field(default="", description="how the step time came about, where it is not that of a whole run")

    @property
    def likeness(self) -> Likeness:
        """What decides how much it has in common with others."""
        return Likeness(self.stack, self.model, self.setting)


class OwnRuns(BaseModel):
    """A team's measured runs, as they are kept."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    schema_: Literal["asap.own_runs/2"] = Field(default="asap.own_runs/2", alias="schema")
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
        hint = "`asap accuracy calibrate --forget` removes it"
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
    known = _path().exists()
    _path().unlink(missing_ok=True)
    return known


def _path() -> Path:
    return home() / "own_runs.json"


LEVELS = ("this chip and stack", "the same model", "the same program")
"""What the nearest of one's own runs has in common with the run that is predicted: each includes those before it."""


@dataclass(frozen=True)
class Narrowing:
    """What own runs say of a prediction.

    Args:
        runs: of the same chip and stack; 0 where own runs cannot be used.
        shift: of ``ln(step time)``, in half-widths of the interval.
        scale: of the interval's width.
        nearest: what the nearest of them has in common with the run, one of :data:`LEVELS`.
    """

    runs: int
    shift: float = 0.0
    scale: float = 1.0
    nearest: str = LEVELS[0]

    @property
    def note(self) -> str:
        """What was done, in words."""
        if not self.runs:
            return f"{OWN_RUNS}not used, from another calibration; `asap accuracy calibrate --with SESSION` adds them"
        change = f"{format_percent(abs(self.scale - 1), 0)} {'narrower' if self.scale < 1 else 'wider'}"
        nearest = f", the nearest of {self.nearest}," if self.nearest != LEVELS[0] else ""
        return f"{OWN_RUNS}{self.runs} of {LEVELS[0]}{nearest} correct the prediction; its interval is {change}"

    @property
    def source(self) -> str:
        """What is added to the source of a figure."""
        return f", {'narrowed' if self.scale < 1 else 'corrected'} by {self.runs} of your runs" if self.runs else ""


class Sharing(BaseModel):
    """How residuals of one team go together, in published runs.

    The shares are of the variance of a residual in half-widths.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    stack: float = Field(default=0.0, ge=0, le=1, description="that runs of one chip and stack have in common")
    model: float = Field(default=0.0, ge=0, le=1, description="that runs of one model have in common")
    setting: float = Field(default=0.0, ge=0, le=1, description="that runs have in common which differ in their plan")
    mean_square: float = Field(default=1.0, gt=0, description="of residuals")
    quantile: float = Field(default=1.0, gt=0, description="of |what is left| over the width expected of it")

    def narrowing(self, wanted: Likeness, known: Sequence[OwnRun]) -> Narrowing | None:
        """What own runs say of a run; ``None`` where none is of its chip and stack."""
        alike = [run for run in known if run.stack == wanted.stack]
        if not alike:
            return None
        residuals = np.array([run.residual for run in alike])
        shift, scale = self.krige(residuals, [run.likeness for run in alike], [wanted])
        nearest = max(map(partial(_level, wanted), alike), key=LEVELS.index)
        return Narrowing(len(alike), float(shift[0]), self.quantile * float(scale[0]), nearest)

    def krige(
        self, residuals: NDArray[np.float64], known: Sequence[Likeness], wanted: Sequence[Likeness]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Expected residuals of further runs of a stack, and what is left of the interval's width.

        Args:
            residuals: of known runs of the stack, in half-widths, of shape (known,).
            known: the likeness of the known runs.
            wanted: of the further runs.
        """
        among = self._common(known, known) + np.eye(len(known)) * (1 - self.setting)
        to_own = self._common(wanted, known)
        weights = np.linalg.solve(among, to_own.T).T
        found = residuals @ np.linalg.solve(among, residuals) / self.mean_square
        left = np.clip(1 - np.einsum("ij,ij->i", weights, to_own), 0.0, 1.0)
        return weights @ residuals, np.sqrt(left * (PRIOR_WEIGHT + found) / (PRIOR_WEIGHT + len(known)))

    def _common(self, some: Sequence[Likeness], others: Sequence[Likeness]) -> NDArray[np.float64]:
        by_model = np.array([one.model for one in some])[:, None] == np.array([one.model for one in others])
        by_setting = np.array([one.setting for one in some])[:, None] == np.array([one.setting for one in others])
        return self.stack + (self.model - self.stack) * by_model + (self.setting - self.model) * by_setting


def _level(wanted: Likeness, run: OwnRun) -> str:
    if run.setting == wanted.setting:
        return LEVELS[2]
    return LEVELS[1] if run.model == wanted.model else LEVELS[0]
