"""The chip that a chart places its pods on: by the selectors of its templates, or by its folder, where that is called
after a machine of Google Cloud, as in AI-Hypercomputer/gpu-recipes."""

from pathlib import Path, PurePosixPath

from asap.experiments.documents import read_text
from asap.experiments.launch.containers import chip_of_template
from asap.experiments.named_file import below_variable

_MACHINES = {
    "a2-highgpu": "a100-40gb", "a2-ultragpu": "a100-80gb", "a3": "h100", "a3high": "h100", "a3mega": "h100",
    "a3ultra": "h200", "a4": "b200", "a4x": "gb200",
}  # fmt: skip
"""Machines of Google Cloud (cloud.google.com/compute/docs/gpus)."""
_MOST_TEMPLATES = 20


def chip_of_chart(named: str, path: Path) -> str | None:
    """The chip; ``None`` where nothing says it.

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
    placed = (chip_of_template(read_text(template)) for template in templates)
    chip = next((chip for chip in placed if chip is not None), None)
    return chip or next((_MACHINES[part] for part in below.parts if part in _MACHINES), None)
