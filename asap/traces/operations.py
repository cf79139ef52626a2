"""What an operation is, by its name: a collective, the loading of data."""

import re
from functools import lru_cache

from asap.profiles.collectives import base_name, collective_of
from asap.profiles.kernel_names import work_of_kernel

ANY_COLLECTIVE = "collective"
"""A collective whose name does not say which: ``ncclDevKernel_Generic``."""

_LOADING = re.compile(r"enumerate\(DataLoader\)#.*|_(?:Single|Multi)Process\w*DataLoaderIter.*__next__")


@lru_cache(maxsize=1 << 16)
def collective_kind(name: str) -> str | None:
    """Kind of the collective that a kernel, thunk or HLO operation carries out; None if it is not one."""
    if kind := collective_of(base_name(name))[0]:
        return kind
    kernel = work_of_kernel(name)
    return kernel.collective or (ANY_COLLECTIVE if kernel.work == "communication" else None)


def is_loading(name: str) -> bool:
    """Whether a span is the training loop waiting for PyTorch's data loader."""
    return bool(_LOADING.fullmatch(name))
