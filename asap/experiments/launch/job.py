"""An experiment from the manifest of a training job: the command of its containers, read as a script, on the GPUs of
its pods.

Manifests are PyTorchJob, MPIJob and TrainJob of Kubeflow, JobSet, Job, and others that hold pods in the same form. Pods
of a container are the product of the counts above it (``replicas``, ``parallelism``, ``numNodes``).
"""

import re
import shlex
import tomllib
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from asap.core.errors import ConfigError, UnreadError
from asap.core.numbers import LARGEST_COUNT, digits
from asap.core.text import plain
from asap.experiments.experiment import Experiment, refer_to_hardware
from asap.experiments.files.documents import Document, blamed_on, read_text
from asap.experiments.files.yaml_text import parse_yaml
from asap.experiments.processes import set_devices
from asap.hardware.instances import find_instance

_COUNTS = ("replicas", "parallelism", "numNodes")
_GPUS = ("nvidia.com/gpu", "amd.com/gpu", "habana.ai/gaudi")
_SHELLS = frozenset(("sh", "bash", "/bin/sh", "/bin/bash", "/usr/bin/bash", "/usr/bin/env"))
_REFERENCE = re.compile(r"\$\(([A-Za-z_]\w*)\)", re.ASCII)
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_BARE = re.compile(r"[\w./:=,@%+^~{}$-]+", re.ASCII)
_SELECTORS = ("cloud.google.com/gke-accelerator", "node.kubernetes.io/instance-type")
_CHIP, _TOPOLOGY = "cloud.google.com/gke-tpu-accelerator", "cloud.google.com/gke-tpu-topology"
_ACCELERATORS: dict[str, dict[str, str]] = tomllib.loads(
    Path(__file__).with_name("accelerators.toml").read_text(encoding="utf-8")
)


@dataclass(frozen=True)
class _Container:
    """A container that is told what to run.

    Args:
        variables: that it is given, as a line of a shell.
        command: as lines of a shell.
        gpus: of all its pods; 0 if it asks for none, ``None`` if a number is not said.
    """

    variables: str
    command: str
    gpus: int | None


def _all(value: Any, keys: Collection[str]) -> Iterator[Any]:
    """Values of keys wherever they stand."""
    for key, item in (
        value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list) else ()
    ):
        yield from [item] if key in keys else _all(item, keys)


def _containers(value: Any, pods: int | None = 1) -> Iterator[_Container]:
    """Those of a manifest, in their order."""
    if not isinstance(value, Mapping):
        for item in value if isinstance(value, list) else ():
            yield from _containers(item, pods)
        return
    for key in _COUNTS:
        if key in value:
            count = digits(str(value[key]))
            pods = None if count is None or pods is None else pods * count
    resources = value.get("resources") or value.get("resourcesPerNode")
    if not ("command" in value or "args" in value or isinstance(resources, Mapping)):
        for item in value.values():
            yield from _containers(item, pods)
        return
    each = digits(str(next(_all(resources, _GPUS), 0)))
    gpus = 0 if each == 0 else None if pods is None or each is None else pods * each
    yield _Container("; ".join(_variables(value.get("env"))), _command(value), gpus)


def _variables(env: Any) -> Iterator[str]:
    for each in filter(lambda one: isinstance(one, Mapping), env if isinstance(env, list) else ()):
        name, value = str(each.get("name")), each.get("value")
        if value is not None and _NAME.fullmatch(name) and "\n" not in str(value):
            yield f"export {name}={_quoted(str(value))}"


def _command(value: Mapping[str, Any]) -> str:
    """Command and arguments; of ``bash -c`` the script that it is given."""
    said = (value.get(key) or [] for key in ("command", "args"))
    words = [word for one in said for word in ([one] if isinstance(one, str) else one if isinstance(one, list) else [])]
    parts = [_REFERENCE.sub(r"${\1}", str(word)) for word in words]
    if parts and parts[0] in _SHELLS:
        flag = next((place for place, part in enumerate(parts) if re.fullmatch(r"-\w*c", part)), None)
        if flag is not None and flag + 1 < len(parts):
            return parts[flag + 1]
    return " ".join(map(_quoted, parts))


def _quoted(word: str) -> str:
    """A word for a shell, in which variables stay what they are."""
    if _BARE.fullmatch(word):
        return word
    return shlex.quote(word) if "$" not in word else '"' + word.replace('"', '\\"') + '"'


def _add_tpus(documents: list[Document], experiment: Experiment) -> Experiment:
    """The slices of TPUs that a manifest asks for, where no hardware is said."""
    everything = [document.values for document in documents]
    chip, topology = next(_all(everything, (_CHIP,)), None), next(_all(everything, (_TOPOLOGY,)), None)
    if not chip or not topology:
        return experiment
    jobs = next(_all(everything, ("replicatedJobs",)), ())
    slices = digits(str(jobs[0].get("replicas", 1))) if len(jobs) == 1 and isinstance(jobs[0], Mapping) else None
    name = f"{_ACCELERATORS['tpu'].get(str(chip), chip)}-{topology}"
    return set_slices(name, slices or None, experiment, documents[0].path.name)


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
    parsed = (parse_yaml(part, str(path)) for part in re.split(r"^---\s*?$", text, flags=re.MULTILINE))
    found = [Document(path, values, lines) for values, lines in parsed if isinstance(values, dict)]
    return [each for each in found if "apiVersion" in each.values and isinstance(each.values.get("kind"), str)]


def read_job(documents: list[Document], read: ReadScript, experiment: Experiment) -> Experiment:
    """``experiment`` with the first container whose command is read.

    Raises:
        ConfigError: there is none, or what the reader of the command's stack says of it.
    """
    experiment = _add_tpus(documents, experiment)
    for document in documents:
        all_ = list(_containers(document.values))
        known = _add_gpus(document, all_, experiment)
        for each in all_:
            if (found := read(_script_of(each, read_text(document.path)), document.path, known)) is not None:
                return found
    raise _refusal(documents)


def _refusal(documents: list[Document]) -> ConfigError:
    """That no command of a manifest is read, with the first of them."""
    of_job = next((each for each in reversed(documents) if list(_containers(each.values))), documents[-1])
    said = (line for each in _containers(of_job.values) for line in each.command.splitlines())
    first = next((line.strip() for line in said if line.strip()), None)
    starts = f" and runs {plain(first, 80)}" if first else ""
    reason = f"is a manifest ({plain(of_job.values['kind'], 40)}){starts}: no training command that is read"
    hint = "give the script or the configuration that it starts, with --hardware"
    return UnreadError(reason, where=str(of_job.path), hint=hint)


def _script_of(container: _Container, manifest: str) -> str:
    """A container's command after so many empty lines that it begins where the manifest has its first words."""
    first = container.command.partition(" ")[0].strip()
    found = (number for number, line in enumerate(manifest.splitlines(), 1) if first and first in line)
    return f"{container.variables}\n" + "\n" * max(next(found, 2) - 2, 0) + container.command


def _add_gpus(document: Document, all_: list[_Container], experiment: Experiment) -> Experiment:
    """The GPUs of all pods, where no hardware is said."""
    known = [each.gpus for each in all_ if each.gpus is not None]
    if len(known) < len(all_):
        return experiment
    placed = [str(said) for said in _all(document.values, _SELECTORS)]
    machines = (_ACCELERATORS["gpu"].get(said) or (said if find_instance(said) else None) for said in placed)
    if not 0 <= (gpus := sum(known)) <= LARGEST_COUNT:
        reason = f"asks for {gpus:,} GPUs"
        raise ConfigError(reason, where=str(document.path), hint="say the hardware with --hardware")
    return set_devices(gpus, experiment, next(filter(None, machines), None))


def set_slices(name: str | None, slices: int | None, experiment: Experiment, origin: str) -> Experiment:
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
    return experiment.knowing(*notes, hardware=hardware, provenance={"hardware": origin})
