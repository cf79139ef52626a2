"""Launch scripts and job manifests: what they start, read without running anything."""

from asap.experiments.launch.script import Launch, read_launch
from asap.experiments.shell import SCRIPTS

__all__ = ["SCRIPTS", "Launch", "read_launch"]
