"""What a kernel does and what bounds it, by its name: of CUDA, ROCm and XLA."""

import re
from functools import lru_cache

from asap.profiles.profile import Bound

_MATMUL = re.compile(
    r"gemm|gemv|splitk|cublas|cutlass|xmma|Cijk_|tensile|matmul|\bdot\b|dot_general|nvjet|wgmma|[xy]nn_fusion|onednn",
    re.IGNORECASE,
)
_CONVOLUTION = re.compile(
    r"conv(?!ert)|cudnn.*(?:winograd|implicit)|[dw]grad_|scudnn|winograd|miopenSp3|igemm", re.IGNORECASE
)
_ATTENTION = re.compile(r"flash|fmha|attention|attn|mha_|sdpa", re.IGNORECASE)
_STREAMING = re.compile(
    r"^(?:loop|input|transpose|wrapped|concatenate)_\w*?(?:fusion|\d)|elementwise|reduce|softmax|norm|cudnn.*bn_"
    r"|cat(?:array|_)|copy|transpose|nchwto|nhwcto|embedding|embs_|index|gather"
    r"|scatter|multi_tensor|pool|SubTensorOp|scalePacked|radixsort|fill|dropout|adam|sgd",
    re.IGNORECASE,
)
"""A few operations for each element that it reads or writes: far below the ridge point of any accelerator."""


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
