"""What an operation is, by its name: a collective, a matrix product, the loading of data."""

import re
from functools import lru_cache

from asap.profiles.collectives import base_name, collective_of, collective_of_kernel
from asap.profiles.profile import Bound

ANY_COLLECTIVE = "collective"
"""A collective whose name does not say which: ``ncclDevKernel_Generic``."""

_COMMUNICATION_LIBRARY = re.compile(r"[nr]ccl", re.IGNORECASE)
_LOADING = re.compile(r"enumerate\(DataLoader\)#.*|_(?:Single|Multi)Process\w*DataLoaderIter.*__next__")
_MATMUL = re.compile(
    r"gemm|gemv|splitk|cublas|cutlass|xmma|Cijk_|tensile|matmul|\bdot\b|dot_general|nvjet|wgmma|[xy]nn_fusion|onednn",
    re.IGNORECASE,
)
_CONVOLUTION = re.compile(
    r"conv(?!ert)|cudnn.*(?:winograd|implicit)|[dw]grad_|scudnn|winograd|miopenSp3|igemm", re.IGNORECASE
)
_ATTENTION = re.compile(r"flash|fmha|attention|attn|mha_", re.IGNORECASE)
_STREAMING = re.compile(
    r"elementwise|reduce|softmax|norm|cudnn.*bn_|cat(?:array|_)|copy|transpose|nchwto|nhwcto|embedding|embs_|index|gather"
    r"|scatter|multi_tensor|pool|SubTensorOp|scalePacked|radixsort|fill|dropout|adam|sgd",
    re.IGNORECASE,
)
"""A few operations for each element that it reads or writes: far below the ridge point of any accelerator."""


@lru_cache(maxsize=1 << 16)
def collective_kind(name: str) -> str | None:
    """Kind of the collective that a kernel, thunk or HLO operation carries out; None if it is not one."""
    kind = collective_of_kernel(name) or collective_of(base_name(name))[0]
    if kind is None and _COMMUNICATION_LIBRARY.search(name):
        return ANY_COLLECTIVE
    return kind


def is_loading(name: str) -> bool:
    """Whether a span is the training loop waiting for PyTorch's data loader."""
    return bool(_LOADING.fullmatch(name))


@lru_cache(maxsize=1 << 16)
def compute_class(name: str) -> str:
    """``matmul``, ``convolution``, ``attention`` or ``other``, for kernels of CUDA, ROCm and XLA."""
    for pattern, found in ((_ATTENTION, "attention"), (_CONVOLUTION, "convolution"), (_MATMUL, "matmul")):
        if pattern.search(name):
            return found
    return "other"


def bound_of_kernel(name: str) -> Bound:
    """What the name of a kernel says that bounds it: products compute, and what streams tensors wait for HBM.

    Arithmetic intensities: Williams et al., "Roofline" (2009); "How to Scale Your Model", chapter 1.
    """
    if compute_class(name) != "other":
        return "compute"
    return "hbm" if _STREAMING.search(name) else "unknown"
