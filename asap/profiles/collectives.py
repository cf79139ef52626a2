"""Which operations move data between devices and by which collective, and what GPU kernels do (``kernels.toml``).

What a trace states comes first. A kernel that no pattern knows is ``other`` and bound by something unknown.
"""

import re
import tomllib
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any

from asap.profiles.profile import Bound, CollectiveKind

_COMPUTING = ("matmul", "convolution", "attention")


@dataclass(frozen=True)
class KernelWork:
    """What a kernel does: ``communication``, ``matmul``, ``convolution``, ``attention``, ``update``
    (of parameters), ``streaming`` or ``other``.

    ``collective`` is the kind of communication, where the name tells.
    """

    work: str
    collective: CollectiveKind | None = None


_OTHER = KernelWork("other")


@cache
def _file() -> dict[str, Any]:
    return tomllib.loads(files("asap.profiles").joinpath("kernels.toml").read_text(encoding="utf-8"))


@cache
def _kinds(table: str) -> dict[str, CollectiveKind]:
    """The collective of each name of a table."""
    return {name: kind for kind, names in _file()[table].items() for name in names}


@cache
def _table() -> tuple[tuple[re.Pattern[str], KernelWork], ...]:
    return tuple(
        (
            re.compile(entry["pattern"].replace("\\\n", ""), re.IGNORECASE),
            KernelWork(entry["work"], entry.get("collective")),
        )
        for entry in _file()["kernel"]
    )


@lru_cache(maxsize=1 << 16)
def work_of_kernel(name: str) -> KernelWork:
    """What a kernel of CUDA, ROCm or XLA does, by its name."""
    return next((work for pattern, work in _table() if pattern.search(name)), _OTHER)


@lru_cache(maxsize=1 << 12)
def stated_collective(name: str) -> CollectiveKind | None:
    """The collective that PyTorch states in ``Collective name``: ``_allgather_base`` → ``all-gather``."""
    return _kinds("stated").get(re.sub(r"[_\W]", "", name.lower()))


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
    return "hbm" if work in ("streaming", "update") else "unknown"


_NAMELESS = ("", "async-start", "async-update", "async-done")
"""Categories that leave it to the name of the instruction to say what runs."""

_HALF = re.compile(r"(.+?)(?:-(start|update|done))?(?: fusion)?")
_OPCODE = re.compile(r" ([a-z][a-z0-9-]*)\(")
_CALLEE = re.compile(r"calls=%([a-z-]+)")


def collective_of(name: str, category: str = "", expression: str = "") -> tuple[CollectiveKind | None, bool]:
    """Kind of a collective, and whether the operation only waits for one.

    Args:
        name: of the instruction: ``all-gather.5``.
        category: as XProf gives it.
        expression: the instruction as HLO prints it.
    """
    base = base_name(name).replace("_", "-")
    texts = [category, opcode(expression), *_CALLEE.findall(expression)[:1]]
    if category in _NAMELESS:
        texts.append(base)
    for text in texts:
        if (half := _HALF.fullmatch(text)) and (kind := _kinds("instructions").get(half.group(1))):
            return kind, half.group(2) == "done" or category == "async-done"
    return None, base == "async-collective-done"


def base_name(name: str) -> str:
    """The name without its number: ``all-gather.5.remat`` → ``all-gather``."""
    return name.removeprefix("%").partition(".")[0]


def opcode(expression: str) -> str:
    """``%a.1 = f32[8]{0} all-reduce(…)`` → ``all-reduce``; empty if there is none."""
    found = _OPCODE.search(expression)
    return found.group(1) if found else ""


def result_shape(expression: str) -> str | None:
    """``%a.1 = f32[8]{0} all-reduce(…)`` → ``f32[8]{0}``."""
    _, equals, right = expression.partition(" = ")
    found = _OPCODE.search(right)
    return right[: found.start()] if equals and found else None


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
