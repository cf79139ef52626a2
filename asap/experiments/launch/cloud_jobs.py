"""Jobs of clouds that are no manifests of Kubernetes: custom jobs of Vertex AI (``workerPoolSpecs``), command jobs of
Azure ML (``distribution``, ``resources.instance_count``), tasks of Beaker (``resources.gpuCount``)."""

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from asap.core.numbers import digits
from asap.experiments.launch.containers import containers
from asap.hardware.instances import find_instance

STARTS = re.compile(
    r"(?:^|[\s/;&(])(?:torchrun|python3?|accelerate|deepspeed|llamafactory-cli|axolotl|swift|megatron|composer|litgpt"
    r"|tune)\s",
    re.MULTILINE,
)
"""What a command begins with that starts a training."""
_BELOW = ("jobSpec", "job_spec", "trialJobSpec", "trial_job_spec")
_CAPITAL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_INPUT = re.compile(r"\$\{\{\s*(inputs|search_space|outputs)\.([\w.]+)\s*\}\}", re.ASCII)
_MODEL = re.compile(r"/models/([\w.-]+)/")
"""In the path of a model of a registry: ``azureml://registries/azureml-meta/models/Llama-3.3-70B-Instruct/versions/4``."""
_EXPORT = re.compile(r"export [A-Za-z_]\w*=(.*)", re.ASCII)
_SETS = "; "
_AZURE, _AZURE_ONLY = "azuremlschemas", frozenset(("environment", "compute", "distribution", "resources", "code"))


@dataclass(frozen=True)
class CloudJob:
    """A job that runs a command on machines of a cloud.

    Args:
        script: what its machines run, after the variables that they find.
        devices: of all machines; ``None`` where it does not say them.
        machine: as the cloud calls it; ``None`` where it is none that is known.
    """

    script: str
    devices: int | None
    machine: str | None


def cloud_job(values: Mapping[str, Any]) -> CloudJob | None:
    """The job of a file; ``None`` where it is none."""
    return _of_vertex(values) or _of_azure(values) or _of_beaker(values)


def _of_vertex(values: Mapping[str, Any]) -> CloudJob | None:
    """Vertex AI (cloud.google.com/vertex-ai/docs/reference/rest/v1/CustomJobSpec), in JSON's or YAML's case."""
    spec = next((values[key] for key in _BELOW if isinstance(values.get(key), Mapping)), values)
    pools = [pool for pool in _list(_said(spec, "workerPoolSpecs")) if isinstance(pool, Mapping) and pool]
    if not pools:
        return None
    machines = [_said(pool, "machineSpec") for pool in pools]
    counts = [
        _product(_said(pool, "replicaCount", 1), _said(machine, "acceleratorCount", 0))
        for pool, machine in zip(pools, machines, strict=True)
    ]
    devices = None if None in counts else sum(count for count in counts if count) or None
    package = _said(pools[0], "pythonPackageSpec")
    module = [f"python -m {_said(package, 'pythonModule')}"] if package else []
    script = _script(_said(pools[0], "containerSpec") or {"args": [*module, *_list(_said(package, "args"))]})
    return CloudJob(script, devices, _known(_said(machines[0], "machineType")))


def _of_azure(values: Mapping[str, Any]) -> CloudJob | None:
    """Azure ML (azuremlschemas.azureedge.net/latest/commandJob.schema.json)."""
    command, of_azure = values.get("command"), _AZURE in str(values.get("$schema"))
    if not isinstance(command, str) or not (of_azure or len(_AZURE_ONLY & values.keys()) >= 3):
        return None
    resources, distribution = _mapping(values.get("resources")), _mapping(values.get("distribution"))
    machine = _known(resources.get("instance_type"))
    instance = find_instance(machine) if machine else None
    each = instance.gpus if instance else distribution.get("process_count_per_instance", 1)
    devices = _product(resources.get("instance_count", 1), each) if str(each) != "1" else None
    inputs = _mapping(values.get("inputs"))
    told = _INPUT.sub(lambda found: _input(inputs, found), command)
    variables = _mapping(values.get("environment_variables"))
    lines = [f"export {key}={shlex.quote(str(value))}" for key, value in variables.items() if str(key).isidentifier()]
    return CloudJob("\n".join([*lines, told]), devices, machine)


def _input(inputs: Mapping[str, Any], found: re.Match[str]) -> str:
    """The value of an input, of a model the name that its path has; a variable where it is not said."""
    said = inputs.get(found[2]) if found[1] == "inputs" else None
    if isinstance(said, Mapping):
        said = said.get("default", said.get("path"))
    if said is None:
        return f"${found[2].replace('.', '_')}"
    model = _MODEL.search(str(said))
    return shlex.quote(model[1] if model else str(said))


def _of_beaker(values: Mapping[str, Any]) -> CloudJob | None:
    """Beaker (beaker-docs.apps.allenai.org/concept/experiments.html)."""
    task = next((task for task in _list(values.get("tasks")) if isinstance(task, Mapping)), None)
    if task is None or not ({"command", "arguments"} & task.keys()) or "beaker" not in str(task.get("image")):
        return None
    devices = _product(task.get("replicas", 1), _mapping(task.get("resources")).get("gpuCount", 0))
    container = {"command": task.get("command"), "args": task.get("arguments"), "env": task.get("envVars")}
    return CloudJob(_script(container), devices or None, None)


def _script(container: Any) -> str:
    """What a container runs; where that starts no training, a variable which holds a command that does."""
    found = next(iter(containers(_mapping(container), {})), None)
    if found is None:
        return ""
    held = found.variables.split(_SETS) if not STARTS.search(found.command) else []
    values = (" ".join(shlex.split(said[1])) for each in held if (said := _EXPORT.fullmatch(each)))
    command = next((value for value in values if STARTS.search(value)), found.command)
    return f"{found.variables}\n{command}"


def _said(value: Any, key: str, default: Any = None) -> Any:
    """A value by its name in JSON's case, ``machineSpec``, or in YAML's, ``machine_spec``."""
    names: Iterator[str] = iter((key, _CAPITAL.sub("_", key).lower()))
    return next((value[name] for name in names if isinstance(value, Mapping) and name in value), default)


def _known(machine: Any) -> str | None:
    return machine if isinstance(machine, str) and find_instance(machine) else None


def _product(*numbers: Any) -> int | None:
    found = [digits(str(number)) for number in numbers]
    return None if None in found else (found[0] or 0) * (found[1] or 0)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
