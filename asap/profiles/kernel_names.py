"""What a kernel does and what bounds it: the one table of names, ``kernels.toml``, and what a trace states itself.

What a trace states comes first (:func:`stated_collective`); a name is the last resort, and one that no pattern knows is
``other`` and bound by something unknown.
"""

import re
import tomllib
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files

from asap.profiles.profile import Bound, CollectiveKind

_COMPUTING = ("matmul", "convolution", "attention")
_STATED: dict[str, CollectiveKind] = {
    "allreduce": "all-reduce",
    "allreducecoalesced": "all-reduce",
    "reduce": "all-reduce",
    "allgather": "all-gather",
    "allgatherbase": "all-gather",
    "allgatherintotensorcoalesced": "all-gather",
    "reducescatter": "reduce-scatter",
    "reducescatterbase": "reduce-scatter",
    "reducescattertensorcoalesced": "reduce-scatter",
    "alltoall": "all-to-all",
    "alltoallv": "all-to-all",
    "alltoallbase": "all-to-all",
    "broadcast": "collective-broadcast",
    "broadcastoop": "collective-broadcast",
    "send": "send-recv",
    "recv": "send-recv",
}
"""Names that PyTorch states, without separators: torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp
(``RECORD_PARAM_COMMS_DATA``)."""


@dataclass(frozen=True)
class KernelWork:
    """What a kernel does: ``communication``, ``matmul``, ``convolution``, ``attention``, ``streaming`` or ``other``.

    ``collective`` is the kind of communication, where the name tells.
    """

    work: str
    collective: CollectiveKind | None = None


_OTHER = KernelWork("other")


@cache
def _table() -> tuple[tuple[re.Pattern[str], KernelWork], ...]:
    entries = tomllib.loads(files("asap.profiles").joinpath("kernels.toml").read_text(encoding="utf-8"))["kernel"]
    return tuple(
        (
            re.compile(entry["pattern"].replace("\\\n", ""), re.IGNORECASE),
            KernelWork(entry["work"], entry.get("collective")),
        )
        for entry in entries
    )


@lru_cache(maxsize=1 << 16)
def work_of_kernel(name: str) -> KernelWork:
    """What a kernel of CUDA, ROCm or XLA does, by its name."""
    return next((work for pattern, work in _table() if pattern.search(name)), _OTHER)


@lru_cache(maxsize=1 << 12)
def stated_collective(name: str) -> CollectiveKind | None:
    """The collective that PyTorch states in ``Collective name``: ``_allgather_base`` → ``all-gather``."""
    return _STATED.get(re.sub(r"[_\W]", "", name.lower()))


def compute_class(name: str) -> str:
    """``matmul``, ``convolution``, ``attention`` or ``other``, for kernels of CUDA, ROCm and XLA."""
    work = work_of_kernel(name).work
    return work if work in _COMPUTING else "other"


def bound_of_kernel(name: str) -> Bound:
    """What the name of a kernel says that bounds it: products compute, and what streams tensors waits for HBM.

    Arithmetic intensities: Williams et al., "Roofline" (2009); "How to Scale Your Model", chapter 1.
    """
    work = work_of_kernel(name).work
    if work in _COMPUTING:
        return "compute"
    return "hbm" if work == "streaming" else "unknown"
