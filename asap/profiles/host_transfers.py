"""Which operations move data between the device and its host: copies of offloaded tensors, and input.

====================================== ======== ===============================================================
as it appears                          kind     seen in
====================================== ======== ===============================================================
``copy-done``, ``copy`` with ``S(5)``  copy     a tensor that lies in host memory, on one side of the copy
``dynamic-slice``, ``async-done``, …   copy     a layer's part of an offloaded stack; ``S(5)`` as above
``host send``, ``host recv``           copy     category: callbacks and offloaded computation
``MemcpyH2D``, ``CopyDeviceToHost``    copy     events of CUDA's and ROCm's tracers
``Memcpy HtoD (Pageable -> Device)``   copy     events of Kineto
``infeed``, ``outfeed``                input    category: what the training loop feeds
====================================== ======== ===============================================================

``S(5)`` is XLA's host memory space (``Layout::kHostMemorySpace``, https://github.com/openxla/xla/blob/main/xla/layout.h);
``S(1)`` and others are on the chip.
"""

import re

from asap.profiles.collectives import opcode

_HOST_MEMORY = re.compile(r"\{[^{}]*S\(5\)[^{}]*\}")
_MOVES = re.compile(r"(?:copy|slice|dynamic-slice|dynamic-update-slice|async)(?:-(?:start|update|done))?")
_TARGETS = re.compile(r'custom_call_target="(?:MoveToHost|MoveToDevice|annotate_device_placement)"')
_EVENT = re.compile(r"Memcpy(?:H2D|D2H)|Copy(?:HostToDevice|DeviceToHost)|Memcpy (?:HtoD|DtoH)(?: \(.*\))?")


def is_host_copy(category: str, expression: str = "") -> bool:
    """Whether an operation copies between HBM and host memory, or waits for such a copy.

    Args:
        category: as XProf gives it.
        expression: the instruction as HLO prints it, with the memory spaces of its operands.
    """
    if category.startswith(("host send", "host recv")):
        return True
    if _HOST_MEMORY.search(expression) is None:
        return False
    return _MOVES.fullmatch(opcode(expression)) is not None or _TARGETS.search(expression) is not None


def is_host_copy_event(name: str) -> bool:
    """Whether an event of a GPU's stream copies between HBM and host memory."""
    return _EVENT.fullmatch(name) is not None


def is_input(category: str) -> bool:
    """Whether an operation is fed by the host, or feeds it: infeed and outfeed."""
    return "infeed" in category or "outfeed" in category
