"""Experiments: the record, the store, and the readers of other people's configurations."""

from asap.experiments.configuration import read_configuration
from asap.experiments.experiment import Experiment, HardwareReference, refer_to_hardware
from asap.experiments.store import ExperimentStore, Listing, Paths

__all__ = [
    "Experiment", "ExperimentStore", "HardwareReference", "Listing", "Paths", "read_configuration",
    "refer_to_hardware",
]  # fmt: skip
