"""Launch scripts, job manifests and benchmark definitions: what they start, read without running anything."""

from asap.experiments.launch.launch import Launch
from asap.experiments.launch.script import read_benchmark, read_launch
from asap.experiments.shell import SCRIPTS

__all__ = ["SCRIPTS", "Launch", "read_benchmark", "read_launch"]
