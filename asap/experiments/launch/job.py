"""An experiment from the manifest of a training job: the command of its containers, read as a script, on the GPUs of
its pods.

Manifests are PyTorchJob, MPIJob and TrainJob of Kubeflow, JobSet, Job, and others that hold pods in the same form. Pods
of a container are the product of the counts above it (``replicas``, ``parallelism``, ``numNodes``).
"""

import re
import shlex
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from asap.core.errors import ConfigError
from asap.core.numbers import LARGEST_COUNT, digits
from asap.core.text import plain
from asap.experiments.experiment import Experiment, refer_to_hardware
from asap.experiments.files.documents import Document, read_text
from asap.experiments.files.yaml_text import parse_yaml
from asap.experiments.launch.reader import with_slices
from asap.hardware.instances import find_instance


def _mappings(value: Any) -> list[Mapping[str, Any]]:
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


_COUNTS = ("replicas", "parallelism", "numNodes")
_GPU = re.compile(r"(?:nvidia\.com|amd\.com)/gpu|habana\.ai/gaudi")
_SHELLS = frozenset(("sh", "bash", "/bin/sh", "/bin/bash", "/usr/bin/bash", "/usr/bin/env"))
_REFERENCE = re.compile(r"\$\(([A-Za-z_]\w*)\)", re.ASCII)
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_BARE = re.compile(r"[\w./:=,@%+^~{}$-]+", re.ASCII)
_SELECTORS = ("cloud.google.com/gke-accelerator", "node.kubernetes.io/instance-type")
_ACCELERATORS: dict[str, dict[str, str]] = tomllib.loads(
    Path(__file__).with_name("accelerators.toml").read_text(encoding="utf-8")
)


@dataclass(frozen=True)
class Container:
    """A container that is told what to run.

    Args:
        variables: that it is given, as a line of a shell.
        command: as lines of a shell.
        gpus: of all its pods; 0 if it asks for none, ``None`` if a number is not said.
    """

    variables: str
    command: str
    gpus: int | None


def _containers(values: Mapping[str, Any]) -> list[Container]:
    """Those of a manifest, in their order."""
    return list(_within(values, 1))


def _machine_of(value: Any) -> str | None:
    """The machine, or the chip, that pods are told to be placed on; ``None`` where it is not said."""
    if isinstance(value, Mapping):
        said = next((str(value[key]) for key in _SELECTORS if key in value), "")
        if machine := _machine(said):
            return machine
    items = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    return next((found for item in items if (found := _machine_of(item)) is not None), None)


def _machine(selected: str) -> str | None:
    return _ACCELERATORS["gpu"].get(selected) or (selected if find_instance(selected) else None)


def _within(value: Any, pods: int | None) -> Iterator[Container]:
    if isinstance(value, list):
        for item in value:
            yield from _within(item, pods)
    if not isinstance(value, Mapping):
        return
    for key in _COUNTS:
        if key in value:
            count = digits(str(value[key]))
            pods = None if count is None or pods is None else pods * count
    resources = value.get("resources") or value.get("resourcesPerNode")
    if "command" in value or "args" in value or isinstance(resources, Mapping):
        yield _container(value, resources, pods)
        return
    for item in value.values():
        yield from _within(item, pods)


def _container(value: Mapping[str, Any], resources: Any, pods: int | None) -> Container:
    said = [str(number) for number in _found(resources)]
    each = digits(said[0]) if said else 0
    gpus = 0 if each == 0 else None if pods is None or each is None else pods * each
    return Container("; ".join(_variables(value.get("env"))), _command(value), gpus)


def _found(resources: Any) -> Iterator[Any]:
    """Numbers of GPUs in limits or requests."""
    for key, value in resources.items() if isinstance(resources, Mapping) else ():
        if _GPU.fullmatch(str(key)):
            yield value
        yield from _found(value)


def _variables(env: Any) -> Iterator[str]:
    for each in _mappings(env):
        name, value = str(each.get("name")), each.get("value")
        if value is not None and _NAME.fullmatch(name) and "\n" not in str(value):
            yield f"export {name}={_quoted(str(value))}"


def _command(value: Mapping[str, Any]) -> str:
    """Command and arguments; of ``bash -c`` the script that it is given."""
    parts = [part for key in ("command", "args") for part in _words(value.get(key))]
    parts = [_REFERENCE.sub(r"${\1}", part) for part in parts]
    if parts and parts[0] in _SHELLS:
        flag = next((place for place, part in enumerate(parts) if re.fullmatch(r"-\w*c", part)), None)
        if flag is not None and flag + 1 < len(parts):
            return parts[flag + 1]
    return " ".join(map(_quoted, parts))


def _words(said: Any) -> list[str]:
    return [str(word) for word in said] if isinstance(said, list) else [str(said)] if isinstance(said, str) else []


def _quoted(word: str) -> str:
    """A word for a shell, in which variables stay what they are."""
    if _BARE.fullmatch(word):
        return word
    return shlex.quote(word) if "$" not in word else '"' + word.replace('"', '\\"') + '"'


_CHIP, _TOPOLOGY = "cloud.google.com/gke-tpu-accelerator", "cloud.google.com/gke-tpu-topology"


def _with_tpus(documents: list[Document], experiment: Experiment) -> Experiment:
    """The slices of TPUs that a manifest asks for, where no hardware is said."""
    everything = [document.values for document in documents]
    chip, topology = _find(everything, _CHIP), _find(everything, _TOPOLOGY)
    if not chip or not topology:
        return experiment
    slices = next((count for document in documents if (count := _slices(document)) is not None), None)
    return with_slices(
        f"{_ACCELERATORS['tpu'].get(str(chip), chip)}-{topology}", slices, experiment, documents[0].path.name
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
        kind = document.values.get("kind") if document is not None and "apiVersion" in document.values else None
        found += [document] if document is not None and isinstance(kind, str) else []
    return found


def read_job(documents: list[Document], read: ReadScript, experiment: Experiment) -> Experiment | None:
    """``experiment`` with the first container whose command is read; ``None`` if there is none.

    Raises:
        ConfigError: what the reader of the command's stack says of it.
    """
    experiment = _with_tpus(documents, experiment)
    for document in documents:
        all_ = _containers(document.values)
        known = _with_gpus(document, all_, experiment)
        for each in all_:
            if (found := read(_script_of(each, read_text(document.path)), document.path, known)) is not None:
                return found
    return None


def refuse_job(documents: list[Document]) -> ConfigError:
    """That no command of a manifest is read, with the first of them."""
    of_job = next((each for each in reversed(documents) if _containers(each.values)), documents[-1])
    said = (line for each in _containers(of_job.values) for line in each.command.splitlines())
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
    return with_devices(sum(known), _machine_of(document.values), experiment, str(document.path))


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
