"""An experiment from the manifest of a training job on GPUs: the command of its containers, read as a script."""

import re
from collections.abc import Callable
from pathlib import Path

from asap.core.errors import ConfigError
from asap.core.text import plain
from asap.experiments.documents import Document, read_text
from asap.experiments.experiment import Experiment
from asap.experiments.hardware import refer_to_hardware
from asap.experiments.launch.containers import Container, chip_of, containers
from asap.experiments.launch.manifest import is_manifest
from asap.experiments.yaml_text import parse_yaml

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
    for document in documents:
        all_ = containers(document.values)
        known = _with_hardware([each.gpus for each in all_], chip_of(document.values), experiment)
        for each in all_:
            script = _at_its_line(each, read_text(document.path))
            if (found := read(script, document.path, known)) is not None:
                return found
    return None


def refuse_job(document: Document) -> ConfigError:
    """That no command of a manifest is read, with the first of them."""
    said = (line for each in containers(document.values) for line in each.command.splitlines())
    first = next((line.strip() for line in said if line.strip()), None)
    starts = f" and runs {plain(first, 80)}" if first else ""
    reason = f"is a manifest ({plain(document.values['kind'], 40)}){starts}: no training command that is read"
    return ConfigError(
        reason, where=str(document.path), hint="give the script or the configuration that it starts, with --hardware"
    )


def _at_its_line(container: Container, text: str) -> str:
    """A container's script, whose command begins at the line of the manifest that has its first word."""
    first = container.command.split(maxsplit=1)[:1]
    lines = (number for number, line in enumerate(text.splitlines(), 1) if first and first[0] in line)
    before = max(next(lines, 2) - 2, 0)
    return f"{container.variables}\n{chr(10) * before}{container.command}"


def _documents(text: str) -> list[str]:
    parts: list[list[str]] = [[]]
    for line in text.splitlines():
        if line.rstrip() == "---":
            parts.append([])
        else:
            parts[-1].append(line)
    return ["\n".join(part) for part in parts if any(line.strip() for line in part)]


def _with_hardware(gpus: list[int | None], chip: str | None, experiment: Experiment) -> Experiment:
    """The GPUs of all pods, where no hardware is said."""
    given = experiment.hardware
    known = [count for count in gpus if count is not None]
    if len(known) < len(gpus) or not sum(known) or given.name or given.devices:
        return experiment
    reference, notes = refer_to_hardware(f"{chip}-{sum(known)}" if chip else None, devices=sum(known))
    update = {"hardware": reference, "notes": (*experiment.notes, *notes)}
    return experiment.model_copy(update=update)
