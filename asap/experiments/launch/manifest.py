"""Kubernetes manifests (JobSet, Job, …) that start MaxText on TPUs of GKE: command, chip, topology and slices."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from asap.core.errors import ConfigError
from asap.core.text import plain
from asap.experiments.files.documents import Document
from asap.experiments.launch.launch import Launch
from asap.experiments.launch.script import read_launch

_CHIP, _TOPOLOGY = "cloud.google.com/gke-tpu-accelerator", "cloud.google.com/gke-tpu-topology"
_CHIPS = {
    "tpu-v4-podslice": "v4",
    "tpu-v5-lite-podslice": "v5e",
    "tpu-v5p-slice": "v5p",
    "tpu-v6e-slice": "v6e",
    "tpu7x": "tpu7x",
}
"""Accelerators of GKE (cloud.google.com/kubernetes-engine/docs/concepts/plan-tpus)."""


def is_manifest(document: Document) -> bool:
    """Whether a document is one."""
    return "apiVersion" in document.values and isinstance(document.values.get("kind"), str)


def starts_maxtext(document: Document) -> bool:
    """Whether it has a command of MaxText."""
    return any(read_launch(text) is not None for text in _texts(document.values))


def read_manifest(documents: list[Document]) -> Launch:
    """The start of MaxText in the documents of a manifest, one of which may be a ConfigMap with its script.

    Raises:
        ConfigError: there is none.
    """
    texts = (text for document in documents for text in _texts(document.values))
    known = _environment([document.values for document in documents])
    found = next((launch for text in texts if (launch := read_launch(text, known))), None)
    if found is None:
        reason = f"is a manifest ({plain(documents[-1].values['kind'], 40)}) that does not start MaxText"
        where = str(documents[-1].path)
        raise ConfigError(reason, where=where, hint="give the script or the configuration that it starts")
    everything = [document.values for document in documents]
    chip = _find(everything, _CHIP)
    topology = _find(everything, _TOPOLOGY)
    name = _CHIPS.get(str(chip), str(chip) if chip else None)
    hardware = f"{name}-{topology}" if name and topology else None
    slices = next((count for document in documents if (count := _slices(document)) is not None), None)
    return replace(found, hardware=found.hardware or hardware, slices=found.slices or slices, line=1)


def _environment(value: Any) -> dict[str, str]:
    """Variables that containers are given as they stand (``env``), but for those that two are given otherwise."""
    found: dict[str, str | None] = {}
    for name, text in _variables(value):
        found[name] = text if found.get(name, text) == text else None
    return {name: text for name, text in found.items() if text is not None}


def _variables(value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        said = value.get("env")
        for item in said if isinstance(said, list) else ():
            if isinstance(item, Mapping) and isinstance(item.get("name"), str) and "value" in item:
                yield item["name"], str(item["value"])
    for inner in value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ():
        yield from _variables(inner)


def _slices(document: Document) -> int | None:
    spec = document.values.get("spec")
    jobs = spec.get("replicatedJobs") if isinstance(spec, Mapping) else None
    if not isinstance(jobs, list) or len(jobs) != 1 or not isinstance(jobs[0], Mapping):
        return None
    replicas = jobs[0].get("replicas", 1)
    if isinstance(replicas, int) and not isinstance(replicas, bool) and 0 < replicas < 10_000:
        return replicas
    raise ConfigError(f"replicas must be a number of slices, not {plain(replicas, 40)}", where=str(document.path))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        if "maxtext" in value.casefold():
            yield value
    elif isinstance(value, Mapping | list):
        for item in value.values() if isinstance(value, Mapping) else value:
            yield from _texts(item)


def _find(value: Any, key: str) -> Any:
    if isinstance(value, Mapping) and key in value:
        return value[key]
    items = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    return next((found for item in items if (found := _find(item, key)) is not None), None)
