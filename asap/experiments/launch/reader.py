"""An experiment from what starts a run of MaxText: a script or a manifest."""

from collections.abc import Sequence
from pathlib import Path

from asap.core.errors import UnreadError
from asap.core.secrets import redacted
from asap.experiments.experiment import Experiment, refer_to_hardware
from asap.experiments.files.documents import Document, blamed_on, find_named, missing
from asap.experiments.launch.script import Launch
from asap.experiments.maxtext.reader import read_maxtext
from asap.experiments.maxtext.settings import OVERRIDE, TABLE, known_keys
from asap.experiments.record_file import FIELDS
from asap.stacks.maxtext.axes import FILLED_BY_DEFAULT, axis_key

_BASE = Path("base.yml")


def is_setting(key: str) -> bool:
    """Whether MaxText has a setting of that name."""
    return key in known_keys()


def is_override(key: str) -> bool:
    """Whether an override is for MaxText, which refuses what it does not know."""
    return "." not in key and (key not in FIELDS or is_setting(key))


def read_started(launch: Launch, path: Path, overrides: Sequence[str], experiment: Experiment) -> Experiment:
    """``experiment`` with one start of MaxText in a script, and overrides of the user on top.

    Raises:
        ConfigError: its configuration is not there, or wrong.
    """
    given = {text.partition("=")[0] for text in overrides}
    unknown = [key for key in launch.unknown if key not in {*given, *_NO_MATTER}]
    if unsaid := [key for key in unknown if key in TABLE.words()]:
        reason = f"sets {', '.join(unsaid)} by a variable whose value is not said"
        raise UnreadError(reason, where=f"{path}:{launch.line}", hint=f"add {' '.join(f'{key}=…' for key in unsaid)}")
    document = _configuration(launch, path)
    origin = f"{path.name}:{launch.line}"
    said = [*((text, origin) for text in launch.overrides), *((text, OVERRIDE) for text in overrides)]
    experiment = with_slices(launch.hardware, launch.slices, experiment, origin)
    experiment = read_maxtext(document, said, experiment)
    environment = {name: redacted(value) for name, value in launch.environment.items()}
    sources = {f"environment.{name}": origin for name in environment}
    environment = environment | experiment.environment
    notes = (f"set by a variable whose value is not said: {', '.join(unknown)}",) if unknown else ()
    return experiment.knowing(*notes, environment=environment, provenance=sources)


def _configuration(launch: Launch, path: Path) -> Document:
    """The file that MaxText is started with, from the folder of the script or one above it."""
    if launch.config is None:
        return Document(_BASE, {}, {})
    if (found := find_named(launch.config, path)) is not None:
        return found.document()
    if Path(launch.config).name == _BASE.name:
        return Document(_BASE, {}, {})
    hint = "give the configuration itself, with the overrides of the script"
    raise missing("starts MaxText with", launch.config, path, hint)


def with_slices(name: str | None, slices: int | None, experiment: Experiment, origin: str) -> Experiment:
    """``experiment`` with slices of TPUs, where no hardware is said.

    Raises:
        ConfigError: there are no such.
    """
    given = experiment.hardware
    if name is None or given.name or given.chip or given.topology or given.devices:
        return experiment
    slices = given.slices if "slices" in given.model_fields_set else slices
    with blamed_on(origin):
        hardware, notes = refer_to_hardware(name, slices=slices)
    provenance = dict.fromkeys((f"hardware.{field}" for field in type(hardware).model_fields), origin)
    return experiment.knowing(*notes, hardware=hardware, provenance=provenance)


_NO_MATTER = (
    "base_output_directory", "dataset_path", "dataset_type", "grain_train_files", "hf_access_token", "run_name",
    "tokenizer_path", *(axis_key(network, name) for network, name in FILLED_BY_DEFAULT.items()),
)  # fmt: skip
"""Settings that say where things are, not what is computed, and axes that take what the others leave."""
