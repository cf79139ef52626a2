"""What the tests of the mapping language write programs for."""

from asap.compiler.reference.expressible import mapping_target
from asap.hardware import resolve_hardware
from asap.models import Workload, find_architecture

SLICE = resolve_hardware("v5e:4x4").slice
WORKLOAD = Workload(global_batch=64, sequence_length=4096)
DENSE = mapping_target(find_architecture("llama2-70b"), WORKLOAD)  # pyright: ignore[reportArgumentType]
EXPERTS = mapping_target(find_architecture("mixtral-8x7b"), WORKLOAD)  # pyright: ignore[reportArgumentType]
