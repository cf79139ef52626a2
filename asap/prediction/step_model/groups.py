"""What runs have in common: framework class, chip generation and its vendor, precision class, attention kernel."""

import re
from dataclasses import dataclass

from asap.hardware.chip import Chip
from asap.hardware.slices import Slice
from asap.models import Workload
from asap.stacks.kin import kin_name as framework_class
from asap.stacks.kin import kin_of
from asap.stacks.launchers import contract_of

_PRECISIONS = (
    ("fp4", r"fp4"),
    ("fp8", r"fp8|float8|e4m3|hybrid"),
    ("int8", r"int8|aqt"),
    ("fp32", r"^(fp32|float32|tf32)$"),
)


NO_SCORES_FROM = 16_384
"""Tokens of a sequence from which the scores of one layer, in bf16 and for 32 heads, take 16 GiB and more."""


@dataclass(frozen=True)
class Groups:
    """The groups that a run belongs to, for the effects on constants; ``None`` where it is not known."""

    chip: str
    framework: str | None
    precision: str
    kernel: str | None
    fabric: str | None = None
    vendor: str | None = None

    @classmethod
    def of(cls, hardware: Slice, workload: Workload, fabric: str | None = None) -> "Groups":
        """Groups of a run."""
        return cls(
            chip=generation(hardware.chip.name),
            framework=framework_class(workload.framework),
            precision=precision_class(workload.precision),
            kernel=kernel_of(workload, hardware.chip.kind),
            fabric=fabric,
            vendor=vendor_of(hardware.chip),
        )


def precision_class(name: str | None) -> str:
    """``MXFP8`` → ``fp8``; everything of 16 bits, and what is not said, is ``bf16``."""
    return _first(_PRECISIONS, name) or "bf16"


PYTORCH, EXPANDABLE = "pytorch", "pytorch with expandable segments"


def allocator_class(framework: str | None, kind: str) -> str:
    """Who plans the memory: the compiler of a ``tpu``, ``xla`` on GPUs, or ``pytorch``, block by block, which
    Megatron-Core helps with buffers of its own for parameters and gradients
    (``core/distributed/param_and_grad_buffer.py``). torchtitan is started with segments that grow (``run_train.sh``),
    so that what comes and goes leaves no gaps."""
    if kind == "tpu":
        return "tpu"
    return kin_of(framework).own_allocator or (EXPANDABLE if contract_of(framework).segments_grow else PYTORCH)


def generation(chip: str) -> str:
    """``a100-80gb`` → ``a100``, ``gb200`` → ``b200``, ``h800`` → ``h100``: chips that share their compute units. An H20
    has the HBM of an H200 and a seventh of its matrix units, so it is one of its own."""
    base = re.sub(r"^g(?=[bh]\d)", "", chip.split("-")[0])
    return {"a800": "a100", "h200": "h100", "h800": "h100"}.get(base, base)


def vendor_of(chip: Chip) -> str:
    """``amd``, ``aws``, ``google``, ``intel`` or ``nvidia``: whose libraries run the matrix products."""
    return "google" if chip.kind == "tpu" else chip.title.split()[0].casefold()


FLASH = r"flash|varlen|splash|cudnn|memory.?eff|sdpa|flex|triton|autoselected|\bte\b|transformer.?engine"
_OPEN = "eager|math|naive|vanilla|dot_product|torch"
_ATTENTION = (("softmax", "unfused"), ("flash", FLASH), ("softmax", "fused"), ("unfused", _OPEN))


def attention_class(kernel: str | None) -> str | None:
    """``flash`` (no scores in HBM), ``softmax`` (fused over them: TE's and XLA's "unfused"), ``unfused``, unknown."""
    return None if kernel is None else _first(_ATTENTION, kernel)


def kernel_of(workload: Workload, kind: str) -> str | None:
    """``flash-1``, ``flash`` or ``splash`` for kernels that keep scores on the chip; ``None`` for others.

    A kernel that is not said is ``unsaid`` where the stack does not bring its own: it may be any of them.
    """
    kernel = workload.attention
    if attention_class(kernel) not in (None, "flash"):
        return None
    if kind == "tpu":
        return "splash"
    if is_kernel_open(workload):
        return "unsaid"
    return "flash-1" if re.search(r"v1|flash.?attention.?1|triton", (kernel or "").casefold()) else "flash"


def is_kernel_open(workload: Workload) -> bool:
    """Whether a GPU's kernel is neither said, nor the stack's own, nor told by a sequence whose scores fit no HBM."""
    stack_decides = has_kernel_of_the_chip(workload.attention, workload.framework)
    return (
        attention_class(workload.attention) is None
        and not stack_decides
        and (workload.sequence_length or 0) < NO_SCORES_FROM
    )


def has_kernel_of_the_chip(kernel: str | None, framework: str | None) -> bool:
    """Whether fused attention is written anew for each generation of chips: by cuDNN, which Transformer Engine and JAX
    call, or in FlashAttention-3. PyTorch's stacks bring FlashAttention-2, which was written for the A100."""
    stated = re.search(
        r"cudnn|transformer.?engine|\bte\b|(flash.?att(entio)?n|flash|\bfa).?[34]", (kernel or "").casefold()
    )
    return bool(stated) or kin_of(framework).brings_kernels


def _first(rules: tuple[tuple[str, str], ...], text: str | None) -> str | None:
    low = (text or "").casefold()
    return next((label for label, pattern in rules if re.search(pattern, low)), None)
