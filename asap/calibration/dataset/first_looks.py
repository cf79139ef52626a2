"""What was predicted of published runs when their source was first seen, before anything was mended that it showed.

Once a source was looked at, it no longer stands for sources that were never seen, even where no constant is fitted to
it. First looks say how far a prediction lies off for the next source.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from asap.calibration.dataset.rows import read_rows
from asap.calibration.dataset.runs import PublishedRun
from asap.core.errors import ConfigError
from asap.core.text import plain
from asap.prediction.uncertainty.step_interval import Doubts

Vector = NDArray[np.float64]
Kind = Literal["chip", "vendor", "framework", "precision"]


class FirstLook(BaseModel):
    """Of one run."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str = Field(description="of the run")
    source: str
    predicted_s: float = Field(gt=0, description="the step time, predicted by the code and fit of that day")
    new: tuple[Kind, ...] = Field(description="what no source of that fit had")


def read_first_looks(path: Path) -> dict[str, FirstLook]:
    """First looks by run.

    Raises:
        ConfigError: the file cannot be read, or holds something else.
    """
    try:
        return {look.id: look for look in map(FirstLook.model_validate, read_rows(path))}
    except ValidationError as error:
        raise ConfigError(f"holds no first looks: {plain(error, 120)}", where=str(path)) from error


def as_first_seen(
    runs: Sequence[PublishedRun], residuals: Vector, doubts: Doubts, looks: Mapping[str, FirstLook]
) -> tuple[Vector, Doubts]:
    """Residuals and doubts with those of the first look in place of today's, where there was one.

    Args:
        runs: with a step time.
        residuals: ln(measured / predicted) of the same runs, today.
        doubts: of the same runs, today.
        looks: by run.
    """
    found, changed = residuals.copy(), {name: value.copy() for name, value in doubts.items()}
    for row, run in enumerate(runs):
        if (look := looks.get(run.id)) is not None and run.step_time is not None:
            found[row] = np.log(run.step_time / look.predicted_s)
            for kind in get_args(Kind):
                changed[kind][row] = float(kind in look.new)
    return found, changed
