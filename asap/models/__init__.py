"""What is trained: the architecture of a decoder, its parameters, and the workload of one step."""

from asap.models.architecture import Architecture
from asap.models.catalogue import find_architecture, known_architectures
from asap.models.parameters import Parameters, count_parameters
from asap.models.rows import architecture_from_row
from asap.models.workload import Workload

__all__ = [
    "Architecture",
    "Parameters",
    "Workload",
    "architecture_from_row",
    "count_parameters",
    "find_architecture",
    "known_architectures",
]
