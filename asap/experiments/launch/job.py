"""An experiment from the manifest of a training job: the command of its containers, read as a script."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from asap.core.errors import ConfigError
from asap.core.numbers import LARGEST_COUNT
from asap.core.text import plain
from asap.experiments.experiment import Experiment, refer_to_hardware
from asap.experiments.files.documents import Document, read_text
from asap.experiments.files.yaml_text import parse_yaml
from asap.experiments.launch.containers import ACCELERATORS, Container, containers, machine_of
from asap.experiments.launch.reader import with_slices

_CHIP, _TOPOLOGY = "cloud.google.com/gke-tpu-accelerator", "cloud.google.com/gke-tpu-topology"


def is_manifest(document: Document) -> bool:
    """Whether a document is one."""
    return "apiVersion" in document.values and isinstance(document.values.get("kind"), str)


def _with_tpus(documents: list[Document], experiment: Experiment) -> Experiment:
    """The slices of TPUs that a manifest asks for, where no hardware is said."""
    everything = [document.values for document in documents]
    chip, topology = _find(everything, _CHIP), _find(everything, _TOPOLOGY)
    if not chip or not topology:
        return experiment
    slices = next((count for document in documents if (count := _slices(document)) is not None), None)
    return with_slices(
        f"{ACCELERATORS['tpu'].get(str(chip), chip)}-{topology}", slices, experiment, documents[0].path.name
    )


def _slices(document: Document) -> int | None:
    spec = document.values.get("spec")
    jobs = spec.get("replicatedJobs") if isinstance(spec, Mapping) else None
    if not isinstance(jobs, list) or len(jobs) != 1 or not isinstance(jobs[0], Mapping):
        return None
    replicas = jobs[0].get("replicas", 1)
    if isinstance(replicas, int) and not isinstance(replicas, bool) and 0 < replicas < 10_000:
        return replicas
    raise ConfigError(f"replicas must be a number of slices, not {plain(replicas, 40)}", where=str(document.path))


def _find(value: Any, key: str) -> Any:
    if isinstance(value, Mapping) and key in value:
        return value[key]
    items = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    return next((found for item in items if (found := _find(item, key)) is not None), None)


_TEMPLATE = re.compile(r"\{\{-?\s*(?:\.|\$|if|range|include|with|end)")
ReadScript = Callable[[str, Path, Experiment], Experiment | None]
"""The reader of a script of any stack: its text, the file that has it, and what is known besides."""


def manifests(path: Path) -> list[Document]:
    """The manifests of a file, which may hold several documents; none where it is no such file.

    Raises:
        ConfigError: it holds one, and is malformed.
    """
    text = read_text(path)
    if "apiVersion:" not in text or "kind:" not in text:
        return []
    if _TEMPLATE.search(text):
        hint = "give what helm template renders of it"
        raise ConfigError("is a template of a Helm chart", where=str(path), hint=hint)
    found: list[Document] = []
    for part in _documents(text):
        values, lines = parse_yaml(part, str(path))
        document = Document(path, values, lines) if isinstance(values, dict) else None
        found += [document] if document is not None and is_manifest(document) else []
    return found


def read_job(documents: list[Document], read: ReadScript, experiment: Experiment) -> Experiment | None:
    """``experiment`` with the first container whose command is read; ``None`` if there is none.

    Raises:
        ConfigError: what the reader of the command's stack says of it.
    """
    experiment = _with_tpus(documents, experiment)
    for document in documents:
        all_ = containers(document.values)
        known = _with_gpus(document, all_, experiment)
        for each in all_:
            if (found := read(_script_of(each, read_text(document.path)), document.path, known)) is not None:
                return found
    return None


def refuse_job(documents: list[Document]) -> ConfigError:
    """That no command of a manifest is read, with the first of them."""
    of_job = next((each for each in reversed(documents) if containers(each.values)), documents[-1])
    said = (line for each in containers(of_job.values) for line in each.command.splitlines())
    first = next((line.strip() for line in said if line.strip()), None)
    starts = f" and runs {plain(first, 80)}" if first else ""
    reason = f"is a manifest ({plain(of_job.values['kind'], 40)}){starts}: no training command that is read"
    return ConfigError(
        reason, where=str(of_job.path), hint="give the script or the configuration that it starts, with --hardware"
    )


def _script_of(container: Container, manifest: str) -> str:
    """A container's command after so many empty lines that it begins where the manifest has its first words."""
    first = container.command.partition(" ")[0].strip()
    found = (number for number, line in enumerate(manifest.splitlines(), 1) if first and first in line)
    return f"{container.variables}\n" + "\n" * max(next(found, 2) - 2, 0) + container.command


def _documents(text: str) -> list[str]:
    parts: list[list[str]] = [[]]
    for line in text.splitlines():
        if line.rstrip() == "---":
            parts.append([])
        else:
            parts[-1].append(line)
    return ["\n".join(part) for part in parts if any(line.strip() for line in part)]


def _with_gpus(document: Document, all_: list[Container], experiment: Experiment) -> Experiment:
    """The GPUs of all pods, where no hardware is said."""
    known = [each.gpus for each in all_ if each.gpus is not None]
    if len(known) < len(all_):
        return experiment
    return with_devices(sum(known), machine_of(document.values), experiment, str(document.path))


def with_devices(devices: int, machine: str | None, experiment: Experiment, where: str) -> Experiment:
    """``experiment`` with so many GPUs, where no hardware is said.

    Raises:
        ConfigError: no run has so many.
    """
    given = experiment.hardware
    if not devices or given.name or given.devices:
        return experiment
    if not 0 < devices <= LARGEST_COUNT:
        raise ConfigError(f"asks for {devices:,} GPUs", where=where, hint="say the hardware with --hardware")
    reference, notes = refer_to_hardware(f"{machine}-{devices}" if machine else None, devices=devices)
    return experiment.knowing(*notes, hardware=reference)
