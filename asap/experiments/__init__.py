"""Experiments: the record, the store, and the readers of other people's configurations."""

from asap.experiments.configuration import read_configuration
from asap.experiments.experiment import Experiment, HardwareReference, refer_to_hardware
from asap.experiments.maxtext import known_keys
from asap.experiments.maxtext_script import read_launch
from asap.experiments.store import ExperimentStore, Listing, Paths

__all__ = [
    "Experiment", "ExperimentStore", "HardwareReference", "Listing", "Paths", "known_keys", "read_configuration",
    "read_launch", "refer_to_hardware",
]  # fmt: skip
