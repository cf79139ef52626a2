"""The machine that a chart places its pods on: by the selectors of its templates, or by its folder, where that is
called after a machine of Google Cloud, as in AI-Hypercomputer/gpu-recipes."""

from pathlib import Path, PurePosixPath

from asap.experiments.files.documents import read_text
from asap.experiments.files.named_file import below_variable
from asap.experiments.launch.containers import machine_of_template

_MACHINES = {
    "a2-highgpu": "a2-highgpu-8g", "a2-ultragpu": "a2-ultragpu-8g", "a3": "h100", "a3high": "a3-highgpu-8g",
    "a3mega": "a3-megagpu-8g", "a3ultra": "a3-ultragpu-8g", "a4": "a4-highgpu-8g", "a4x": "gb200",
}  # fmt: skip
"""Machines of Google Cloud, or their chip where several have it (cloud.google.com/compute/docs/gpus)."""
_MOST_TEMPLATES = 20


def machine_of_chart(named: str, path: Path) -> str | None:
    """The machine, or its chip; ``None`` where nothing says it.

    Args:
        named: the chart, as the command has it.
        path: the script of the command; the chart lies below its folder or one above it.

    Raises:
        ConfigError: a template cannot be read.
    """
    below = PurePosixPath(below_variable(named).lstrip("/"))
    folders = (folder / below / "templates" for folder in (path.parent, *path.absolute().parents))
    found = next((folder for folder in folders if folder.is_dir()), None)
    templates = sorted(found.glob("*.yaml"))[:_MOST_TEMPLATES] if found else []
    placed = (machine_of_template(read_text(template)) for template in templates)
    machine = next((machine for machine in placed if machine is not None), None)
    return machine or next((_MACHINES[part] for part in below.parts if part in _MACHINES), None)
