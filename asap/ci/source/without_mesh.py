"""A MaxText configuration with its mesh left open, to propose plans where the configured mesh is invalid."""

import re
from collections.abc import Sequence
from pathlib import Path

from asap.core.errors import AsapError
from asap.experiments import Experiment, read_configuration
from asap.stacks.maxtext.axes import FILLED_BY_DEFAULT, axis_key
from asap.study.study import Study, study_of

_AXIS = re.compile(r"\b((?:ici|dcn)_\w+_parallelism)[\"']?\s*[:=]\s*[\"']?(-?\d{1,9})\b", re.ASCII)


def study_without_mesh(
    target: Path | None, overrides: Sequence[str], empty: Experiment, texts: Sequence[str]
) -> Study | None:
    """The run that a configuration describes with its mesh left open; ``None`` if something else is wrong too.

    Args:
        target: the file, if there is one.
        overrides: ``key=value`` on top of it.
        empty: what the file is read into.
        texts: of the included files and of the file itself, later ones winning; read for the axes they set.
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
