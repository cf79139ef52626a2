"""A MaxText configuration without its mesh: what can still be proposed where the plan itself is invalid."""

import re
from collections.abc import Sequence
from pathlib import Path

from asap.core.errors import AsapError
from asap.diagnosis.study import Study, study_of
from asap.experiments import Experiment, read_configuration
from asap.plans.maxtext_axes import FILLED_BY_DEFAULT, axis_key

_AXIS = re.compile(r"\b((?:ici|dcn)_\w+_parallelism)[\"']?\s*[:=]\s*[\"']?(-?\d{1,9})\b", re.ASCII)


def without_plan(
    target: Path | None, overrides: Sequence[str], empty: Experiment, texts: Sequence[str]
) -> Study | None:
    """The run that a configuration describes if its mesh is left open; ``None`` if that is not all that is wrong.

    Args:
        target: the file, if there is one.
        overrides: ``key=value`` on top of it.
        empty: what the file is read into.
        texts: of all that it includes and of the file, what counts last; to find the axes that they set.
    """
    said = {key: value for text in (*texts, *overrides) for key, value in _AXIS.findall(text)}
    if not said:
        return None
    left_open = {axis_key(network, name): "-1" for network, name in FILLED_BY_DEFAULT.items()}
    free = [f"{key}={value}" for key, value in (dict.fromkeys(said, "1") | left_open).items()]
    kept = [override for override in overrides if not _AXIS.match(override)]
    try:
        experiment = read_configuration(target, [*kept, *free], empty)
        settings = {key: value for key, value in experiment.hyperparameters.items() if key not in left_open} | said
        return study_of(experiment.model_copy(update={"plan": None, "hyperparameters": settings}))
    except AsapError:
        return None
