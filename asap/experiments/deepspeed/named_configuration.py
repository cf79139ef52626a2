"""The DeepSpeed configuration that another file names."""

from pathlib import Path
from typing import Any

from asap.core.errors import ConfigError
from asap.experiments.deepspeed.shipped import note_on_shipped, shipped_configuration
from asap.experiments.experiment import Experiment
from asap.experiments.files.named_file import Brought, find_named, missing
from asap.experiments.settings.stack_settings import dotted


def read_named_configuration(named: Any, path: Path, brought: Brought | None = None) -> dict[str, Any]:
    """DeepSpeed's settings by dotted key, of the file that is named, among those that are brought along, or from the
    folder of ``path`` or one above it; of one that a stack brings along what decides a step.

    Raises:
        ConfigError: none is named, or it is not there or malformed.
    """
    if isinstance(named, dict):
        return dotted(named)
    if not isinstance(named, str) or not named.endswith((".json", ".conf")):
        reason = "names no DeepSpeed configuration, and how else it is sharded is not read"
        hint = (
            "add deepspeed=FILE.json, or give the script that starts it (llamafactory-cli, torchrun), or the model's"
            " config.json, --hardware, --batch, --sequence and --plan"
        )
        raise ConfigError(reason, where=str(path), hint=hint)
    found = find_named(named, path, brought)
    if found is not None:
        return dotted(found.document().values)
    if (shipped := shipped_configuration(named)) is not None:
        return shipped
    raise missing("names", named, path, "lay it beside the file")


def with_note_on_shipped(experiment: Experiment, named: Any, path: Path, brought: Brought | None = None) -> Experiment:
    """``experiment`` with a note where the configuration that is named was taken for one that a stack brings along."""
    if not isinstance(named, str) or shipped_configuration(named) is None or find_named(named, path, brought):
        return experiment
    return experiment.model_copy(update={"notes": (*experiment.notes, note_on_shipped(named))})
