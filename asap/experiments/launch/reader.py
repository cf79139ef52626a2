"""An experiment from what starts a run of MaxText: a script or a manifest."""

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from asap.core.errors import AsapError, ConfigError
from asap.core.files import is_file
from asap.core.secrets import redacted
from asap.core.text import plain
from asap.experiments.experiment import Experiment, refer_to_hardware
from asap.experiments.files.documents import Document, read_document
from asap.experiments.launch.script import Launch, launch_of
from asap.experiments.maxtext.architecture import UNNAMED, decides_model
from asap.experiments.maxtext.reader import read_maxtext
from asap.experiments.maxtext.settings import OVERRIDE, known_keys, shipped
from asap.experiments.record_file import FIELDS
from asap.experiments.shell import Start
from asap.models import Architecture
from asap.stacks.maxtext.axes import decides_mesh

_BATCH = frozenset(("per_device_batch_size", "gradient_accumulation_steps"))
_SEQUENCE = frozenset(("max_target_length",))
_OF_PLAN = {
    "remat": frozenset(("remat_policy",)),
    "microbatches": frozenset(("gradient_accumulation_steps", "num_pipeline_microbatches")),
}


def without_unsettled(experiment: Experiment, keys: Collection[str]) -> Experiment:
    """``experiment`` without what hangs on keys whose value is not said; each of it is named.

    Args:
        experiment: as read with MaxText's defaults in the place of such keys.
        keys: of MaxText, set to variables that nothing settles.
    """
    notes: list[str] = []

    def hangs_on(what: str, found: Collection[str]) -> bool:
        if found:
            notes.append(f"the {what} is unknown: it hangs on {', '.join(sorted(found))}; add it as key=value")
        return bool(found)

    update: dict[str, Any] = {}
    workload, plan = experiment.workload, experiment.plan
    if hangs_on("model", {key for key in keys if decides_model(key)}):
        update["model"] = Architecture()
        experiment = experiment.model_copy(
            update={"notes": tuple(note for note in experiment.notes if not note.startswith(UNNAMED))}
        )
    if hangs_on("batch", _BATCH & set(keys)):
        workload = workload.model_copy(update={"global_batch": None})
    if hangs_on("sequence length", _SEQUENCE & set(keys)):
        workload = workload.model_copy(update={"sequence_length": None})
    if plan is not None and hangs_on("plan", {key for key in keys if decides_mesh(key, experiment.hardware.slices)}):
        plan = None
    if plan is not None:
        open_fields = [field for field, said in _OF_PLAN.items() if said & set(keys)]
        plan = plan.model_copy(update=dict.fromkeys(open_fields))
    return experiment.knowing(*notes, **update, workload=workload, plan=plan)


_BASE = Path("base.yml")
_MOST_STRAYS = 3


def is_setting(key: str) -> bool:
    """Whether MaxText has a setting of that name."""
    return key in known_keys()


def is_override(key: str) -> bool:
    """Whether an override is for MaxText, which refuses what it does not know."""
    return "." not in key and (key not in FIELDS or is_setting(key))


def read_started(start: Start, overrides: Sequence[str], experiment: Experiment) -> Experiment:
    """``experiment`` with one start of MaxText, and overrides of the user on top.

    Raises:
        ConfigError: its configuration is not there, or wrong.
    """
    launch, path = launch_of(start.outer, start.command), start.path
    document, notes = _configuration(launch, path)
    origin = f"{path.name}:{launch.line}"
    said = [*((text, origin) for text in launch.overrides), *((text, OVERRIDE) for text in overrides)]
    experiment = with_slices(launch.hardware, launch.slices, experiment, origin)
    given = {text.partition("=")[0] for text in overrides}
    experiment = read_maxtext(document, said, experiment)
    experiment = without_unsettled(experiment, set(launch.unknown) - given)
    environment = {name: redacted(value) for name, value in launch.environment.items()}
    sources = {f"environment.{name}": origin for name in environment}
    environment = environment | experiment.environment
    return experiment.knowing(*notes, *_remarks(launch, given), environment=environment, provenance=sources)


def _configuration(launch: Launch, path: Path) -> tuple[Document, tuple[str, ...]]:
    """The file that MaxText is started with, from the folder of the script or one above it."""
    if launch.config is None:
        return Document(_BASE, {}, {}), ()
    below = Path(launch.config.lstrip("/"))
    folders = (path.parent, *path.absolute().parents)
    places = (folder / name for folder in folders for name in (below, Path("src") / below))
    found = next((place for place in places if is_file(place)), None)
    if found is not None:
        return read_document(found), ()
    if below.name == _BASE.name:
        return Document(_BASE, {}, {}), ()
    if (own := shipped(launch.config)) is not None:
        return own, (f"{own.path.name} is not there, and taken as MaxText's own",)
    hint = "give the configuration itself, with the overrides of the script"
    raise ConfigError(f"starts {plain(launch.config, 80)}, which is not there", where=str(path), hint=hint)


def with_slices(name: str | None, slices: int | None, experiment: Experiment, origin: str) -> Experiment:
    """``experiment`` with slices of TPUs, where no hardware is said.

    Raises:
        ConfigError: there are no such.
    """
    given = experiment.hardware
    if name is None or given.name or given.chip or given.topology or given.devices:
        return experiment
    slices = given.slices if "slices" in given.model_fields_set else slices
    try:
        hardware, notes = refer_to_hardware(name, slices=slices)
    except AsapError as error:
        raise ConfigError(error.message, where=origin, hint=error.hint) from error
    provenance = dict.fromkeys((f"hardware.{field}" for field in type(hardware).model_fields), origin)
    return experiment.knowing(*notes, hardware=hardware, provenance=provenance)


def _remarks(launch: Launch, given: set[str]) -> tuple[str, ...]:
    notes = []
    if unknown := [key for key in launch.unknown if key not in given and key not in _NO_MATTER]:
        notes.append(f"set by a variable whose value is not said: {', '.join(unknown)}")
    if launch.strays:
        shown = ", ".join(plain(word, 40) for word in launch.strays[:_MOST_STRAYS])
        notes.append(f"no key=value, which MaxText refuses: {shown}")
    return tuple(notes)


_NO_MATTER = (
    "base_output_directory", "dataset_path", "grain_train_files", "hf_access_token", "run_name", "tokenizer_path",
)  # fmt: skip
"""Settings that say where things are, not what is computed."""
