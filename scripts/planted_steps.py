"""Training steps as Kineto records them, each with one fault of a known size.

A healthy step is products, a fused attention and overlapped gradients, launched well ahead. A fault adds device work of
its own, or time in which the host does something and the device has nothing to do. ``FAULTS`` has them by cause.
"""

import json
import tomllib
from collections.abc import Callable
from pathlib import Path

STEP_US, STEPS, LAYERS = 20_000.0, 3, 10
BF16 = "c10::BFloat16"
MM = "nvjet_tst_128x256_64x4_1x2_h_bz_coopA_NNT"
FLASH = "void flash::flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 64, 4, bfloat16_t>>(Flash_fwd_params)"
ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
TABLE = Path(__file__).resolve().parents[1] / "tests" / "data" / "planted" / "faults.toml"
SIZES = (0.06, 0.15, 0.4)


class Recorded:
    """One rank: a thread that launches, one that loads data, a stream that computes and one that communicates."""

    def __init__(self, rank: int = 0, world: int = 1):
        self.rank, self.world = rank, world
        self.events: list[dict] = []
        self.host = self.device = 0.0
        self.number = 0

    def event(self, category: str, name: str, start: float, length: float, thread: object = 1, **arguments) -> None:
        """One event."""
        self.events.append(
            {"ph": "X", "cat": category, "name": name, "pid": 7, "tid": thread, "ts": round(start, 3),
             "dur": round(length, 3), "args": arguments}
        )  # fmt: skip

    def run(self, operator: str, kernel: str, length: float, dims=(), dtype=BF16, around: tuple[str, ...] = (),
            launch_us: float = 4.0, launcher: str = "cudaLaunchKernel", category: str = "kernel") -> None:  # fmt: skip
        """An operator that launches a kernel; one that the device starts at once, if it is not busy."""
        self.number += 1
        begin, span = self.host, launch_us + 2
        for name in (*around, operator):
            facts = {"Input Dims": [list(each) for each in dims], "Input type": [dtype] * len(dims)} if dims else {}
            self.event("cpu_op", name, self.host, span, **{"External id": self.number, **facts})
        self.event("cuda_runtime", launcher, begin + 1, launch_us, correlation=self.number)
        start = max(self.device, begin + 1 + launch_us)
        self.event(category, kernel, start, length, "stream 7", correlation=self.number, stream=7, device=0)
        self.device, self.host = start + length, begin + span

    def wait(self) -> None:
        """The host waits until the device is done."""
        self.event("cuda_runtime", "cudaStreamSynchronize", self.host, max(self.device - self.host, 1.0), correlation=0)
        self.host = max(self.device, self.host + 1.0)

    def pause(self, length: float, *events: tuple[str, str]) -> None:
        """The device runs dry, and then the host is busy with something for as long."""
        self.host = max(self.host, self.device)
        for category, name in events:
            self.event(category, name, self.host, length, correlation=0)
        self.host += length

    def communicate(self, kind: str, kernel: str, length: float, bytes_: int, hidden: bool = False) -> None:
        """A collective on a stream of its own; one that is not hidden has the others wait."""
        self.number += 1
        self.event("cuda_runtime", "cudaLaunchKernelExC", self.host, 4.0, correlation=self.number)
        start = max(self.host + 4, self.device - (length if hidden else 0))
        said = {"Collective name": kind, "In msg nelems": bytes_ // 2, "Out msg nelems": bytes_ // 2,
                "dtype": "BFloat16", "Group size": 8, "Process Group Name": "0"}  # fmt: skip
        said["Process Group Ranks"] = str(list(range(max(self.world, 2))))
        self.event("kernel", kernel, start, length, "stream 20", correlation=self.number, stream=20, device=0, **said)
        self.host += 5
        self.device = max(self.device, start + length) if not hidden else self.device

    def write(self, folder: Path) -> Path:
        """As a file of one rank."""
        device = [{"name": "NVIDIA H100 80GB HBM3"}]
        info = {"distributedInfo": {"rank": self.rank, "world_size": self.world}} if self.world > 1 else {}
        path = folder / f"rank{self.rank}.json"
        path.write_text(json.dumps({"deviceProperties": device, **info, "traceEvents": self.events}))
        return path


Fault = Callable[[Recorded, float], None]
"""Adds so many microseconds to a step."""


def healthy(run: Recorded, share: float) -> None:
    """A part of a step: products near their peak, fused attention, hidden gradients."""
    each = STEP_US * share / LAYERS
    for _ in range(LAYERS):
        tokens = each * 0.8e-6 * 0.7 * 9.89e14 / (2 * 4096 * 4096)
        run.run("aten::mm", MM, each * 0.8, ((round(tokens / 64) * 64, 4096), (4096, 4096)))
        run.run("flash_attn::_flash_attn_forward", FLASH, each * 0.2)
    run.communicate("allreduce", ALL_REDUCE, each, 64_000_000, hidden=True)


def record(fault: Fault, share: float, folder: Path) -> None:
    """A run of three steps with the fault, which takes ``share`` of each."""
    run = Recorded()
    for number in range(STEPS):
        start = run.host
        healthy(run, (1 - share) / 2)
        fault(run, STEP_US * share)
        healthy(run, (1 - share) / 2)
        if number == STEPS - 1:
            run.wait()
        run.event("user_annotation", f"ProfilerStep#{number}", start, run.host - start)
    run.write(folder)


def device(*kernels: tuple, times: int = 10, around: tuple[str, ...] = ()) -> Fault:
    """Kernels that take the time in turn: operator, kernel, dimensions, type."""

    def add(run: Recorded, length: float) -> None:
        for _ in range(times):
            for kernel in kernels:
                run.run(kernel[0], kernel[1], length / times / len(kernels), *kernel[2:], around=around)

    return add


def host(*events: tuple[str, str]) -> Fault:
    """The host does something while the device has nothing to do."""
    return lambda run, length: run.pause(length, *events)


def collective(kind: str, kernel: str, times: int = 4, bytes_: int = 50_000_000) -> Fault:
    """Collectives that nothing hides."""

    def add(run: Recorded, length: float) -> None:
        for _ in range(times):
            run.communicate(kind, kernel, length / times, bytes_)

    return add


def _synchronising(run: Recorded, length: float) -> None:
    """The value of a tensor is read, after which the host has to catch up."""
    for _ in range(4):
        run.event("cpu_op", "aten::item", run.host, max(run.device - run.host, 0) + 3)
        run.event("cpu_op", "aten::_local_scalar_dense", run.host, max(run.device - run.host, 0) + 2)
        run.wait()
        run.host += length / 4


def _launch_bound(run: Recorded, length: float) -> None:
    """Kernels that are shorter than their launch."""
    for _ in range(int(length / 12)):
        run.host = max(run.host, run.device)
        run.run("aten::add", "void at::native::vectorized_elementwise_kernel<4, CUDAFunctor_add>", 1.5,
                ((64,), (64,)), launch_us=8.5)  # fmt: skip


def _pageable(run: Recorded, length: float) -> None:
    run.run("aten::copy_", "Memcpy HtoD (Pageable -> Device)", length, ((4096, 4096),), "float",
            launcher="cudaMemcpyAsync", category="gpu_memcpy")  # fmt: skip


def _small_collectives(run: Recorded, length: float) -> None:
    for _ in range(int(length / 25)):
        run.communicate("allreduce", ALL_REDUCE, 25, 4096)


def _read() -> dict[str, Fault]:
    made: dict[str, Fault] = {}
    for name, fault in tomllib.loads(TABLE.read_text(encoding="utf-8")).items():
        if "host" in fault:
            made[name] = host(*map(tuple, fault["host"]))
        elif "collective" in fault:
            made[name] = collective(*fault["collective"])
        else:
            kernels = [(k["operator"], k["name"], k.get("shapes", ()), k.get("type", BF16)) for k in fault["kernel"]]
            made[name] = device(*kernels, times=fault.get("times", 10), around=tuple(fault.get("around", ())))
    return made


FAULTS: dict[str, Fault] = {
    **_read(),
    "small_collectives": _small_collectives,
    "launch_bound": _launch_bound,
    "synchronisation": _synchronising,
    "pageable_copies": _pageable,
}
