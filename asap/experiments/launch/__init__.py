"""Launch scripts, job manifests and benchmark definitions: what they start, read without running anything."""

from asap.experiments.launch.launch import Launch
from asap.experiments.launch.script import SCRIPTS, read_benchmark, read_launch

__all__ = ["SCRIPTS", "Launch", "read_benchmark", "read_launch"]
