"""An experiment from what starts a run of MaxText: a script or a manifest."""

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from asap.core.errors import AsapError, ConfigError
from asap.core.files import is_file
from asap.core.secrets import redacted
from asap.core.text import plain
from asap.core.units import counted
from asap.experiments.deepspeed.script import starts_under_condition
from asap.experiments.experiment import Experiment
from asap.experiments.files.documents import Document, parse_document, read_document
from asap.experiments.files.named_file import Brought, find_brought
from asap.experiments.hardware import refer_to_hardware
from asap.experiments.launch.containers import config_maps
from asap.experiments.launch.job import read_manifest, with_gpus
from asap.experiments.launch.refusal import refuse_script
from asap.experiments.launch.script import Launch, find_other_program, read_launch
from asap.experiments.maxtext.architecture import UNNAMED, decides_model
from asap.experiments.maxtext.reader import read_maxtext
from asap.experiments.maxtext.settings import OVERRIDE, known_keys, shipped
from asap.experiments.processes import note_on_cut
from asap.experiments.shell import script_text, with_given, with_sources
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
    update |= {"workload": workload, "plan": plan, "notes": (*experiment.notes, *notes)}
    return experiment.model_copy(update=update)


_BASE = Path("base.yml")
_MOST_STRAYS = 3


def read_launched(path: Path, overrides: Sequence[str], experiment: Experiment) -> Experiment:
    """``experiment`` with what a script starts, and overrides on top.

    Args:
        path: a shell script.
        overrides: ``key=value`` of the user.
        experiment: what is known besides.

    Raises:
        ConfigError: nothing that is understood is started, or its configuration is wrong.
    """
    text = with_sources(script_text(path), path.parent)
    given = with_given(text, overrides, known_keys().__contains__)
    found = read_started(_of_script(given.script, path), path, given.rest, experiment)
    return found.model_copy(update={"notes": (*found.notes, *given.note(path.name))})


def read_manifested(documents: list[Document], overrides: Sequence[str], experiment: Experiment) -> Experiment:
    """``experiment`` with what a manifest starts; raises like :func:`read_launched`."""
    launch = read_manifest(documents)
    if launch.hardware is None:
        experiment = with_gpus(documents, experiment)
    maps = config_maps([document.values for document in documents])
    brought = {key: text for texts in maps.values() for key, text in texts.items()}
    return read_started(launch, documents[0].path, overrides, experiment, brought)


def read_started(
    launch: Launch, path: Path, overrides: Sequence[str], experiment: Experiment, brought: Brought | None = None
) -> Experiment:
    """``experiment`` with one start of MaxText, which may find files beside itself; raises like
    :func:`read_launched`."""
    document, notes = _configuration(launch, path, brought or {})
    origin = f"{path.name}:{launch.line}"
    said = [*((text, origin) for text in launch.overrides), *((text, OVERRIDE) for text in overrides)]
    experiment = _with_hardware(launch, experiment, origin)
    given = {text.partition("=")[0] for text in overrides}
    experiment = read_maxtext(document, said, experiment)
    experiment = without_unsettled(experiment, set(launch.unknown) - given)
    environment = {name: redacted(value) for name, value in launch.environment.items()}
    return experiment.model_copy(
        update={
            "environment": environment | experiment.environment,
            "provenance": experiment.provenance | {f"environment.{name}": origin for name in environment},
            "notes": (*experiment.notes, *notes, *_remarks(launch, given)),
        }
    )


def _of_script(text: str, path: Path) -> Launch:
    if (launch := read_launch(text)) is not None:
        return launch
    if program := find_other_program(text):
        raise ConfigError(
            f"starts {plain(program, 80)}",
            where=str(path),
            hint="pre-training and supervised fine-tuning of all weights are read",
        )
    if starts_under_condition(text):
        reason = "starts DeepSpeed under a condition that it does not decide"
        raise ConfigError(reason, where=str(path), hint="give the DeepSpeed JSON that it names as --config")
    raise refuse_script(text, path)


def _configuration(launch: Launch, path: Path, brought: Brought) -> tuple[Document, tuple[str, ...]]:
    """The file that MaxText is started with: brought along, or from the folder of the script or one above it."""
    if launch.config is None:
        return Document(_BASE, {}, {}), ()
    below = Path(launch.config.lstrip("/"))
    if (text := find_brought(launch.config, brought)) is not None:
        return parse_document(text, path / below.name), ()
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


def _with_hardware(launch: Launch, experiment: Experiment, origin: str) -> Experiment:
    given = experiment.hardware
    if launch.hardware is None or given.name or given.chip or given.topology or given.devices:
        return experiment
    slices = given.slices if "slices" in given.model_fields_set else launch.slices
    try:
        hardware, notes = refer_to_hardware(launch.hardware, slices=slices)
    except AsapError as error:
        raise ConfigError(error.message, where=origin, hint=error.hint) from error
    provenance = dict.fromkeys((f"hardware.{field}" for field in type(hardware).model_fields), origin)
    return experiment.model_copy(
        update={
            "hardware": hardware,
            "provenance": experiment.provenance | provenance,
            "notes": (*experiment.notes, *notes),
        }
    )


def _remarks(launch: Launch, given: set[str]) -> tuple[str, ...]:
    notes = [*note_on_cut(launch.cut)]
    if unknown := [key for key in launch.unknown if key not in given and key not in _NO_MATTER]:
        notes.append(f"set by a variable whose value is not said: {', '.join(unknown)}")
    if launch.strays:
        shown = ", ".join(plain(word, 40) for word in launch.strays[:_MOST_STRAYS])
        notes.append(f"no key=value, which MaxText refuses: {shown}")
    if launch.others:
        notes.append(f"not read: {counted(launch.others, 'more MaxText command')} of the script")
    return tuple(notes)


_NO_MATTER = (
    "base_output_directory", "dataset_path", "grain_train_files", "hf_access_token", "run_name", "tokenizer_path",
)  # fmt: skip
"""Settings that say where things are, not what is computed."""
