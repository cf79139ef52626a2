"""FLOPs and bytes of an operator by the shapes of its inputs, and where it stands under the roofline of its chip.

A product of matrices counts two FLOPs for a multiplication and an addition; each operand and the result cross HBM once,
so bytes are the least that must move (Williams et al., "Roofline", 2009). Attention: Dao, "FlashAttention-2", section
4.1 (4 d s² forward, 2.5 times as many backward, half of both where it is causal). What is not in the tables is unknown.
"""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from asap.hardware import Chip
from asap.profiles.profile import Bound, Operation, Roofline

ELEMENT_BYTES = {
    **dict.fromkeys(("unsigned char", "signed char", "bool", "Byte", "Char", "Bool", "QInt8"), 1),
    **dict.fromkeys(("Float8_e4m3fn", "Float8_e5m2"), 1),
    **dict.fromkeys(("c10::BFloat16", "c10::Half", "short int", "short", "Half", "BFloat16", "Short"), 2),
    **dict.fromkeys(("float", "int", "Float", "Int", "QInt32"), 4),
    **dict.fromkeys(("double", "long int", "long", "c10::complex<float>", "Double", "Long", "ComplexFloat"), 8),
}
"""Bytes of an element, by the names that PyTorch records of its types: those of C++ and its own
(c10/core/ScalarType.h)."""

_PRECISIONS = {"bfloat16": "bf16", "half": "fp16", "float": "fp32", "double": "fp64"}
_FLOAT8 = "Float8"

Shape = tuple[int, ...]


class OperatorCall(NamedTuple):
    """An operator, the shape of each input (empty for a scalar), its type, and what was given beside tensors."""

    name: str
    shapes: tuple[Shape, ...] = ()
    types: tuple[str, ...] = ()
    concrete: tuple[str, ...] = ()

    @property
    def base_name(self) -> str:
        """Without the namespace, and without what says that it works in place: ``aten::add_`` → ``add``."""
        return self.name.partition("::")[2].removesuffix("_")

    @property
    def precision(self) -> str | None:
        """Of the first input that is a number of known width: ``bf16``, ``fp16``, ``fp8``, ``fp32``, ``fp64``."""
        kinds = (kind.removeprefix("c10::") for kind in self.types)
        known = ("fp8" if kind.startswith(_FLOAT8) else _PRECISIONS.get(kind.lower()) for kind in kinds)
        return next(filter(None, known), None)

    @property
    def is_casting(self) -> bool:
        """Whether it copies from one type to another."""
        return self.base_name == "copy" and len(self.types) > 1 and self.types[0] != self.types[1] != ""

    @property
    def largest(self) -> int:
        """Bytes of the largest input."""
        return max(map(self.bytes_of, range(len(self.shapes))), default=0)

    @property
    def total(self) -> int:
        """Bytes of all inputs."""
        return sum(map(self.bytes_of, range(len(self.shapes))))

    def bytes_of(self, place: int) -> int:
        """Bytes of an input; a scalar, a list and an unknown type count nothing."""
        kind = self.types[place] if place < len(self.types) else ""
        width = 1 if kind.removeprefix("c10::").startswith(_FLOAT8) else ELEMENT_BYTES.get(kind, 0)
        return math.prod(self.shapes[place]) * width if self.shapes[place] else 0

    def numbers(self, place: int) -> Shape:
        """A list that was given: ``[1, 1]`` → ``(1, 1)``; empty where it is not recorded."""
        text = self.concrete[place].strip("[]() ") if place < len(self.concrete) else ""
        parts = text.split(",") if text else []
        return tuple(int(part) for part in parts if part.strip().lstrip("-").isdigit())

    def is_true(self, place: int) -> bool:
        """Whether a flag was given and is set."""
        return place < len(self.concrete) and self.concrete[place] == "True"


_ALIGNED = 8
"""NVIDIA Deep Learning Performance Guide, "Tensor Core Requirements"."""

_BACKWARD_ATTENTION = 2.5
_ATTENTION_HEADS_FIRST = ("_scaled_dot_product", "scaled_dot_product")


class Cost(NamedTuple):
    """FLOPs of products, and the least bytes that cross HBM."""

    flops: float
    bytes: float
    kind: str
    """``matmul``, ``convolution``, ``attention`` or ``streaming``."""


@lru_cache(maxsize=1 << 14)
def cost_of(call: OperatorCall) -> Cost | None:
    """What a call costs; ``None`` where the operator or its shapes are not known."""
    name = call.base_name
    formula = _FORMULAS.get(name) or next((each for word, each in _FAMILIES.items() if word in name), None)
    try:
        return formula(call) if formula and call.shapes else None
    except (IndexError, ValueError):
        return None


def is_misaligned(call: OperatorCall) -> bool:
    """Whether a product runs over dimensions that are no multiple of eight: in two bytes, rows not aligned to 16."""
    cost = cost_of(call)
    if cost is None or cost.kind != "matmul" or call.precision not in ("bf16", "fp16"):
        return False
    matrices = [shape for shape in call.shapes if len(shape) >= 2][:2]
    return any(size % _ALIGNED for shape in (matrices[0][-1:], matrices[-1][-2:]) for size in shape)


def _product(left: int, batched: bool = False) -> Callable[[OperatorCall], Cost | None]:
    """A product of the inputs at ``left`` and behind it."""

    def cost(call: OperatorCall) -> Cost | None:
        one, other = call.shapes[left], call.shapes[left + 1]
        if len(one) < 2 or len(other) < 2 or one[-1] != other[-2]:
            return None
        rows = math.prod(one[:-1])
        return _of_product(call, left, rows, one[-1], other[-1], rows * other[-1])

    def batch(call: OperatorCall) -> Cost | None:
        return cost(call) if len(call.shapes[left]) == len(call.shapes[left + 1]) == 3 else None

    return batch if batched else cost


def _linear(call: OperatorCall) -> Cost | None:
    given, weight = call.shapes[:2]
    if len(weight) != 2 or given[-1] != weight[1]:
        return None
    rows = math.prod(given[:-1])
    return _of_product(call, 0, rows, weight[1], weight[0], rows * weight[0])


def _of_product(call: OperatorCall, left: int, rows: int, depth: int, columns: int, result: int) -> Cost:
    width = call.bytes_of(left) / max(math.prod(call.shapes[left]), 1)
    moved = call.bytes_of(left) + call.bytes_of(left + 1) + result * max(width, 2)
    return Cost(2.0 * rows * depth * columns, moved, "matmul")


def _convolution(call: OperatorCall) -> Cost | None:
    """``input, weight, …``: the size of the result follows from stride, padding and dilation, where recorded."""
    given, weight = call.shapes[:2]
    orders = {"cudnn_convolution": (2, 3, 4), "miopen_convolution": (3, 4, 5)}
    padding, stride, dilation = (call.numbers(place) for place in orders.get(call.base_name, (4, 3, 5)))
    dimensions = len(weight) - 2
    if dimensions < 1 or not len(padding) == len(stride) == len(dilation) == dimensions:
        return None
    turned = call.base_name.lstrip("_") == "convolution" and call.is_true(6)

    def length(size: int, kernel: int, pad: int, step: int, away: int) -> int:
        span = away * (kernel - 1) + 1
        return (size - 1) * step - 2 * pad + span if turned else (size + 2 * pad - span) // step + 1

    result = (given[0], weight[turned], *map(length, given[2:], weight[2:], padding, stride, dilation))
    moved = call.bytes_of(0) * (1 + math.prod(result) / math.prod(given)) + call.bytes_of(1)
    return Cost(_convolved(given if turned else result, weight), moved, "convolution")


def _convolution_backward(call: OperatorCall) -> Cost | None:
    """``grad_output, input, weight``: the gradients of both, each as many FLOPs as forward."""
    result, given, weight = call.shapes[:3]
    if len(weight) < 3 or len(result) != len(weight) or len(given) != len(weight):
        return None
    return Cost(2 * _convolved(result, weight), 2.0 * sum(map(call.bytes_of, range(3))), "convolution")


def _convolved(result: Shape, weight: Shape) -> float:
    return 2.0 * math.prod(result) * math.prod(weight[1:])


def _attention(call: OperatorCall) -> Cost | None:
    """Queries, keys and values of four dimensions, heads before the sequence or behind it."""
    backward = "backward" in call.name
    query, key, value = (call.shapes[place + backward] for place in range(3))
    if not len(query) == len(key) == len(value) == 4 or query[3] != key[3]:
        return None
    heads, sequence = (1, 2) if call.base_name.startswith(_ATTENTION_HEADS_FIRST) else (2, 1)
    scores = query[0] * query[heads] * query[sequence] * key[sequence]
    flops = 2.0 * scores * (query[3] + value[3])
    causal = any(call.is_true(place) for place in range(3 + backward, len(call.concrete)))
    moved = sum(call.bytes_of(place + backward) for place in range(3)) + call.bytes_of(int(backward))
    if backward:
        flops, moved = flops * _BACKWARD_ATTENTION, 2.0 * moved
    return Cost(flops / 2 if causal and query[sequence] == key[sequence] else flops, moved, "attention")


def _experts(call: OperatorCall) -> Cost | None:
    """``tokens, weights in, weights out``, both of all experts, then for each token its experts, which are even."""
    tokens, inward, outward = call.shapes[:3]
    chosen = next((shape[1] for shape in call.shapes[3:] if len(shape) == 2 and shape[0] == tokens[0]), None)
    if chosen is None or not len(inward) == len(outward) == 3 or inward[2] != tokens[1] or inward[0] != outward[0]:
        return None
    pairs = tokens[0] * chosen
    moved = (call.bytes_of(1) + call.bytes_of(2)) * min(pairs / inward[0], 1) + 2.0 * call.bytes_of(0)
    return Cost(2.0 * pairs * (math.prod(inward[1:]) + math.prod(outward[1:])), moved, "matmul")


def _streaming(moved: Callable[[OperatorCall], float]) -> Callable[[OperatorCall], Cost]:
    return lambda call: Cost(0.0, moved(call), "streaming")


def _looked_up(call: OperatorCall) -> Cost | None:
    """``weight, indices``: a row is read and written for each index."""
    weight, indices = call.shapes[:2]
    row = call.bytes_of(0) / max(weight[0], 1)
    return Cost(0.0, 2.0 * row * math.prod(indices) + call.bytes_of(1), "streaming")


_ELEMENTWISE = (
    "add sub mul div neg pow exp log sqrt rsqrt reciprocal abs sin cos tanh sigmoid relu gelu silu where eq ne gt "
    "lt ge le masked_fill clamp clamp_min addcmul addcdiv lerp threshold_backward gelu_backward silu_backward "
    "tanh_backward sigmoid_backward native_dropout bitwise_and bitwise_not logical_not maximum minimum "
    "native_layer_norm native_layer_norm_backward _fused_rms_norm _softmax _log_softmax _softmax_backward_data "
    "_log_softmax_backward_data native_batch_norm native_batch_norm_backward cudnn_batch_norm "
    "cudnn_batch_norm_backward miopen_batch_norm miopen_batch_norm_backward native_group_norm "
    "native_group_norm_backward triu tril cumsum leaky_relu hardtanh "
)
"""All inputs are read and something as large as the largest is written."""
_REDUCING = "sum mean max min argmax linalg_vector_norm norm var_mean std"
_FORMULAS: dict[str, Callable[[OperatorCall], Cost | None]] = {
    **dict.fromkeys(_ELEMENTWISE.split(), _streaming(lambda call: call.total + call.largest)),
    **dict.fromkeys(_REDUCING.split(), _streaming(lambda call: call.total)),
    **dict.fromkeys(("fill", "zero"), _streaming(lambda call: call.bytes_of(0))),
    "copy": _streaming(lambda call: call.bytes_of(0) + call.bytes_of(1)),
    **dict.fromkeys(("embedding", "index_select"), _looked_up),
    **dict.fromkeys(("mm", "_scaled_mm", "_int_mm", "_grouped_mm", "_scaled_grouped_mm"), _product(0)),
    **dict.fromkeys(("addmm", "_addmm_activation"), _product(1)),
    "bmm": _product(0, batched=True),
    "baddbmm": _product(1, batched=True),
    "linear": _linear,
    **dict.fromkeys(("cudnn_convolution", "miopen_convolution", "_convolution", "convolution"), _convolution),
    "convolution_backward": _convolution_backward,
}
_FAMILIES = {"attention": _attention, "attn": _attention, "fused_moe": _experts, "fused_experts": _experts}
"""Of many libraries, by a part of the name."""


_TENSOR_FLOAT = re.compile(r"tf32|tensorop_s1688", re.IGNORECASE)
"""Kernels that multiply fp32 on tensor cores."""


@dataclass(frozen=True)
class Roof:
    """The least seconds that a cost takes on a chip, and which roof sets it."""

    seconds: float
    bound: Bound

    @classmethod
    def of(cls, cost: Cost, chip: Chip, precision: str | None, kernel: str) -> "Roof | None":
        """Under the peak of the precision; ``None`` where the chip has no peak for it."""
        memory = cost.bytes / chip.hbm_bandwidth
        if not cost.flops:
            return cls(memory, "hbm") if cost.bytes else None
        peak = peak_of(chip, precision, kernel)
        if peak is None:
            return None
        compute = cost.flops / peak
        return cls(compute, "compute") if compute >= memory else cls(memory, "hbm")


def peak_of(chip: Chip, precision: str | None, kernel: str) -> float | None:
    """FLOP/s; fp32 that the name of its kernel puts on tensor cores has their peak."""
    if precision == "fp32" and _TENSOR_FLOAT.search(kernel):
        precision = "tf32"
    return chip.peak_flops.get(precision or "")


def program_roofline(operations: Sequence[Operation], chip: Chip | None) -> Roofline:
    """All operations whose cost is known together, against the peak of the precision that most FLOPs have."""
    known = [op for op in operations if op.roofline_efficiency is not None]
    if chip is None or not known:
        return Roofline()
    flops, moved = (
        sum(values) for values in zip(*((op.flops or 0, op.bytes_accessed or 0) for op in known), strict=True)
    )
    leading = max(known, key=lambda op: op.flops or 0)
    peak = peak_of(chip, leading.precision, leading.name)
    time = sum(op.fraction for op in known)
    return Roofline(
        peak_flop_rate=peak,
        peak_hbm_bandwidth=chip.hbm_bandwidth,
        ridge_point=peak / chip.hbm_bandwidth if peak else None,
        operational_intensity=flops / moved if moved else None,
        program_bound=_program_bound(known),
        program_efficiency=sum(op.fraction * (op.roofline_efficiency or 0) for op in known) / time if time else None,
    )


def _program_bound(operations: Sequence[Operation]) -> Bound:
    times = {bound: sum(op.fraction for op in operations if op.bound == bound) for bound in ("compute", "hbm")}
    return "compute" if times["compute"] >= times["hbm"] else "hbm"
