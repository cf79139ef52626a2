"""Profiles made to measure: the planes of a TPU as libtpu writes them, in protobuf's text form."""

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

PS_PER_US = 10**6


@dataclass(frozen=True)
class Op:
    """An operation that runs once a step, one after the other."""

    name: str
    category: str
    us: int
    flops: int = 0
    bytes: int = 0
    expression: str = "f32[8]{0} add(f32[8]{0} %a)"
    path: str = "jit(train_step)/transpose(jvp(layer))/dot_general:"


TRAINING = (
    Op("fusion.1", "convolution fusion", 400, 60 * 10**9, 2**20, "bf16[8,8]{1,0} fusion(bf16[8,8]{1,0} %a)"),
    Op("all-gather.2", "all-gather", 200, 0, 2**24, "bf16[8]{0} all-gather(bf16[4]{0} %b)"),
    Op("closed_call.3", "custom-call", 150, 0, 0, "bf16[8]{0} custom-call(bf16[8]{0} %c)"),
    Op("fusion.4", "all-reduce-scatter fusion", 100, 0, 2**22, "bf16[4]{0} fusion(%d), calls=%all-reduce-scatter.3"),
    Op("async-collective-done.5", "custom fusion", 50, 0, 2**20, "bf16[4]{0} fusion(%e), calls=%fused.3"),
)


class _Plane:
    def __init__(self, name: str):
        self.name = name
        self.stats: dict[str, int] = defaultdict(lambda: len(self.stats) + 1)
        self.events: dict[str, str] = {}
        self.numbers: dict[str, int] = {}
        self.lines: list[str] = []
        self.own: list[str] = []

    def stat(self, **values: int | float | str | bytes) -> str:
        return " ".join(
            f"stats {{ metadata_id: {self.stats[name]} {_value(value)} }}" for name, value in values.items()
        )

    def event(self, name: str, start_us: float, us: float, **stats: int | str) -> str:
        number = self.metadata(name)
        times = f"offset_ps: {round(start_us * PS_PER_US)} duration_ps: {round(us * PS_PER_US)}"
        return f"events {{ metadata_id: {number} {times} {self.stat(**stats)} }}"

    def metadata(self, name: str, display: str = "", **stats: int | str | bytes) -> int:
        if name not in self.numbers:
            number = self.numbers[name] = len(self.events) + 1
            value = f"id: {number} name: {json.dumps(name)} display_name: {json.dumps(display)} {self.stat(**stats)}"
            self.events[name] = f"event_metadata {{ key: {number} value {{ {value} }} }}"
        return self.numbers[name]

    def line(self, number: int, name: str, events: Sequence[str]) -> None:
        self.lines.append(f"lines {{ id: {number} name: {json.dumps(name)} {' '.join(events)} }}")

    def __str__(self) -> str:
        names = (
            f"stat_metadata {{ key: {number} value {{ id: {number} name: {json.dumps(name)} }} }}"
            for name, number in self.stats.items()
        )
        parts = (*self.own, *self.lines, *self.events.values(), *names)
        return f"planes {{ name: {json.dumps(self.name)} {' '.join(parts)} }}"


def tpu_profile(
    operations: Sequence[Op] = TRAINING, steps: int = 3, devices: int = 2, step_us: int = 1000, marked: bool = True,
    host: bool = True, module: str = "jit_train_step(77)", compilation_us: int = 0,
) -> bytes:  # fmt: skip
    """A v5e that runs ``operations`` in each step, the first after compilation; ``marked`` adds step marks."""
    planes = [_device(number, operations, steps, step_us, marked, module, compilation_us) for number in range(devices)]
    return serialised([*planes, *([_Plane("/host:CPU")] if host else [])])


def serialised(planes: Sequence[_Plane]) -> bytes:
    from jax.profiler import ProfileData

    return ProfileData.text_proto_to_serialized_xspace("\n".join(map(str, planes)))


def plane(name: str) -> _Plane:
    """An empty plane."""
    return _Plane(name)


def _device(
    number: int, operations: Sequence[Op], steps: int, step_us: int, marked: bool, module: str, compilation_us: int
) -> _Plane:
    device = _Plane(f"/device:TPU:{number}")
    peaks = {"peak_teraflops_per_second": 197.0, "peak_hbm_bw_gigabytes_per_second": 819.0}
    device.own.append(device.stat(device_type_string="TPU v5 lite", **peaks))
    marks, modules, runs = [], [], []
    for step in range(steps):
        group = {"group_id": step} if marked else {}
        start = compilation_us + step * step_us
        begin = start if step else 0
        marks.append(device.event(str(step), begin, start + step_us - begin, group_id=step))
        modules.append(device.event(module, start, sum(op.us for op in operations), run_id=step, **group))
        for op in operations:
            name = f"%{op.name} = {op.expression}"
            device.metadata(name, op.name, **_costs(op, len(device.events)))
            runs.append(device.event(name, start, op.us, **group))
            start += op.us
    if marked:
        device.line(1, "Steps", marks)
    device.line(2, "XLA Modules", modules)
    device.line(3, "XLA Ops", runs)
    return device


def _costs(op: Op, symbol: int) -> dict[str, int | str | bytes]:
    access = b"\x08\x01\x10\x01\x18" + _varint(op.bytes)
    return {
        "hlo_category": op.category, "program_id": 77, "symbol_id": symbol + 1, "flops": op.flops,
        "model_flops": op.flops, "bytes_accessed": op.bytes, "raw_bytes_accessed": op.bytes,
        "memory_access_breakdown": b"\n" + bytes([len(access)]) + access, "tf_op": op.path, "source": "train.py:3",
    }  # fmt: skip


def _value(value: int | float | str | bytes) -> str:
    if isinstance(value, str):
        return f"str_value: {json.dumps(value)}"
    if isinstance(value, bytes):
        return 'bytes_value: "' + "".join(f"\\{byte:03o}" for byte in value) + '"'
    return f"{'double' if isinstance(value, float) else 'int64'}_value: {value}"


def _varint(number: int) -> bytes:
    low, rest = number & 0x7F, number >> 7
    return bytes([low | 0x80]) + _varint(rest) if rest else bytes([low])
