"""Append to a table of compilations: one JSON line for each drawn configuration that the table has no line of.

    python -m compiled_tables TABLE.jsonl --kind pipeline --count 50 --minutes 60

Stopped and started again, it goes on where it was. Drawn are real decoders, every axis and setting, three TPUs, where
HBM is a real question; nothing of the step model is read, so what it predicts cannot decide what it is taught. Each
program is compiled in a process of its own, which ends with the plan of its HBM.
"""

import argparse
import json
import math
import multiprocessing
import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

from asap.compiler.programs.options import FLAGS_VARIABLE, compiler_flags
from asap.compiler.programs.request import EFFORTS, CompileRequest, Effort, make_request
from asap.compiler.reference.expressible import check_expressible
from asap.compiler.toolchain.child import ENVIRONMENT, die_with
from asap.compiler.toolchain.versions import compiler_versions
from asap.core.errors import PlanError
from asap.hardware import Slice, resolve_hardware
from asap.models import Architecture, Workload, find_architecture
from asap.models.parameters import count_parameters
from asap.plans import AXES, Plan
from asap.plans.axes import Axis
from asap.plans.degrees import workload_under
from asap.plans.validity import violations
from asap.stacks.constraints import constraints_of

Item = TypeVar("Item")

SEED = 18
"""Of the table."""

DENSE = (
    "qwen3-0.6b", "qwen3-1.7b", "qwen3-4b", "qwen3-8b", "qwen3-14b", "qwen3-32b", "qwen2.5-1.5b", "qwen2.5-7b",
    "qwen2.5-14b", "gemma-2b", "gemma-7b", "llama2-7b", "llama2-13b", "llama2-70b", "llama3-8b", "llama3-70b",
    "mistral-7b", "gpt3-6b", "gpt3-22b", "MPT-1b", "MPT-7b", "MPT-30b", "Nemotron3-8B", "Nemotron4-15B",
    "MaxText-16B", "MaxText-32B",
)  # fmt: skip
MIXTURES = ("mixtral-8x7b", "mixtral-8x22b", "qwen3-30b-a3b", "qwen3-235b-a22b")
"""Decoders of the catalogue whose layers are all equal, and which one scan compiles in seconds."""
UNLIKE = (
    "gemma2-2b", "gemma2-9b", "gemma2-27b", "gemma3-4b", "gemma3-12b", "gemma3-27b", "gemma4-26b", "gemma4-31b",
    "gpt-oss-20b", "gpt-oss-120b", "llama4-17b-16e", "llama4-17b-128e", "olmo3-7b", "olmo3-32b",
)  # fmt: skip
"""Those in which local and global attention, or dense and MoE layers, alternate."""
SLICES = (
    "v5e-2x2", "v5e-4x4", "v5e-4x8", "v5e-8x8", "v5e-8x16", "v5e-16x16",
    "v5p-2x2x1", "v5p-2x2x4", "v5p-2x4x4", "v5p-4x4x4", "v5p-4x4x8", "v5p-4x8x8",
    "v6e-2x2", "v6e-4x4", "v6e-4x8", "v6e-8x8", "v6e-8x16", "v6e-16x16",
)  # fmt: skip
IRONWOOD = ("tpu7x-2x2x1", "tpu7x-2x2x2", "tpu7x-2x2x4", "tpu7x-2x4x4", "tpu7x-4x4x4")
LONGEST: Mapping[Axis, int] = {"seq": 16, "model": 32, "stage": 8}
AXIS_WEIGHTS: Mapping[Axis, int] = {"replica": 1, "data": 5, "seq": 2, "model": 4, "expert": 3}
REMAT_WEIGHTS = {
    "full": 6, "none": 2, "minimal": 3, "save_dot_except_mlp": 2, "save_qkv_proj": 2, "save_out_proj": 2,
    "selective": 1, "offload": 2, "context": 1, "query+key+value+context": 1,
}  # fmt: skip
HOST_WEIGHTS = {
    "offload": 3, "host.qkv": 2, "full": 2, "context+host.qkv": 1, "host.qkv+host.out+host.gate+host.up": 1,
    "host.out": 1,
}  # fmt: skip
"""Policies that send tensors to host memory; with ``full`` a layer sends its input."""
SEQUENCES = (1024, 2048, 4096, 4096, 8192, 8192, 16384, 32768)
LEAST_FILL, MOST_FILL = 0.15, 1.3
"""Bounds of :func:`rough_bytes` over the HBM."""
_PRODUCTS_KEPT = {"full": 0.0, "offload": 0.0, "save_out_proj": 0.1, "none": 2.0, "selective": 2.0}
"""What a policy keeps of a layer over the products inside of it, roughly; other policies half."""


@dataclass(frozen=True)
class Kind:
    """What the configurations of one part of the table are drawn from; all have the ``required`` axes."""

    models: Sequence[Sequence[str]]
    slices: Sequence[str] = SLICES
    required: tuple[Axis, ...] = ()
    remat: Mapping[str, int] = field(default_factory=lambda: REMAT_WEIGHTS)
    offload: Sequence[tuple[str, ...]] = ((),) * 8 + (("optimizer",), ("activations",))
    loss_chunks: Sequence[int | None] = (None, None, None, 4, 8)


KINDS: Mapping[str, Kind] = {
    "alike": Kind((DENSE, DENSE, DENSE, MIXTURES)),
    "pipeline": Kind((DENSE, DENSE, DENSE, MIXTURES), SLICES[6:], ("stage",)),
    "unlike": Kind((UNLIKE,), SLICES[6:]),
    "ironwood": Kind((DENSE, MIXTURES, UNLIKE), IRONWOOD),
    "host": Kind(
        (DENSE, DENSE, DENSE, MIXTURES),
        remat=HOST_WEIGHTS,
        offload=((), ("activations",), ("activations",), ("optimizer", "activations")),
        loss_chunks=(None, 4, 8, 8),
    ),
}


@dataclass(frozen=True)
class Drawn:
    """One configuration of the table."""

    model: Architecture
    hardware_name: str
    hardware: Slice
    plan: Plan
    workload: Workload


def draw(kind: str, seed: int, index: int) -> Drawn:
    """The configuration of an index: the first of its random candidates that can run and may fit."""
    candidates = _candidates(KINDS[kind], Random(f"{seed}/{index}"))
    return next(found for found in candidates if _can_run(found) and _is_question(found))


def _candidates(kind: Kind, random: Random) -> Iterator[Drawn]:
    while True:
        model = find_architecture(random.choice(random.choice(kind.models)))
        assert model is not None
        name = random.choice(kind.slices)
        hardware = resolve_hardware(name).slice
        settings: dict[str, Any] = {
            "microbatches": random.choice((None, None, None, 2, 4, 8)),
            "remat": _weighted(random, kind.remat),
            "offload": random.choice(kind.offload),
            "loss_chunks": random.choice(kind.loss_chunks),
            "weight_precision": random.choice((None,) * 7 + ("bf16",)),
        }
        plan = Plan.model_validate({"ici": _degrees(random, hardware.devices, model.is_moe, kind.required), **settings})
        batch = plan.batch_shards * (plan.microbatches or 1) * random.choice((1, 1, 2, 4, 8))
        workload = Workload(global_batch=batch, sequence_length=random.choice(SEQUENCES), framework="MaxText")
        yield Drawn(model, name, hardware, plan, workload)


def _degrees(random: Random, devices: int, is_moe: bool, required: tuple[Axis, ...]) -> dict[Axis, int]:
    """A mesh: up to four axes beside those required, over which the factors of two of the devices are spread."""
    weights: dict[Axis, int] = {axis: weight for axis, weight in AXIS_WEIGHTS.items() if axis != "expert" or is_moe}
    chosen: list[Axis] = [_weighted(random, weights) for _ in range(random.choice((1, 2, 3, 4)))]
    chosen.extend(required)
    degrees: dict[Axis, int] = dict.fromkeys(AXES, 1) | dict.fromkeys(required, 2)
    for _ in range(devices.bit_length() - 1 - len(required)):
        degrees[random.choice(chosen)] *= 2
    return degrees


def _weighted(random: Random, weights: Mapping[Item, int]) -> Item:
    return random.choices(tuple(weights), tuple(weights.values()))[0]


def _can_run(found: Drawn) -> bool:
    if any(found.plan.degree(axis) > longest for axis, longest in LONGEST.items()):
        return False
    if violations(found.plan, constraints_of(found.model, found.workload, found.hardware.devices)):
        return False
    try:
        check_expressible(found.model, workload_under(found.plan, found.workload), found.plan)
    except PlanError:
        return False
    return True


def _is_question(found: Drawn) -> bool:
    capacity = found.hardware.chip.hbm_bytes / found.hardware.chip.devices
    return LEAST_FILL <= rough_bytes(found.model, found.workload, found.plan) / capacity <= MOST_FILL


def rough_bytes(model: Architecture, workload: Workload, plan: Plan) -> float:
    """Bytes of one device in three terms: training state, what the policy keeps of the layers, and logits."""
    degree, policy = plan.degree, plan.remat.value if plan.remat else "full"
    at_once = 1 if degree("stage") > 1 else plan.microbatches or 1
    tokens = (workload.tokens or 0) / plan.batch_shards / degree("seq") / at_once
    shards = degree("data") * degree("seq") * degree("model") * degree("expert") * degree("stage")
    state = (8 if plan.weight_precision else 16) * count_parameters(model).total / shards
    products = (model.heads or 0) * (model.head_dim or 0) * 2 + _mlp_width(model) * 2
    kept = (model.d_model or 0) + _PRODUCTS_KEPT.get(policy, 0.5) * products
    logits = 3 * (model.vocab or 0) / (plan.loss_chunks or 1)
    return state + 2 * tokens * ((model.layers or 0) / degree("stage") * kept + logits) / degree("model")


def _mlp_width(model: Architecture) -> int:
    return model.experts_per_token * (model.expert_d_ff or 0) if model.is_moe else model.d_ff or 0


ARGUMENTS, MESSAGE = "arguments.json", "message.txt"
_REPORT = "*memory-usage-report.txt"
_TOTAL = re.compile(r"\(color=0\)\nTotal bytes: (\d+) ")


def configure(flags: Sequence[str]) -> None:
    """Give the compiler of this process its flags. It reads them once, when it is loaded."""
    os.environ.update({**ENVIRONMENT, "TPU_LOG_DIR": "disabled", FLAGS_VARIABLE: " ".join(flags)})


def plan_memory(request: CompileRequest, folder: Path, parent: int) -> None:
    """Compile in this process, of which nobody waits for the end: all that it finds is written into the folder."""
    die_with(parent)
    configure(request.flags)
    os.environ["XLA_FLAGS"] = f"--xla_dump_to={folder}"
    from asap.compiler.lowering.mesh import describe_mesh
    from asap.compiler.reference.train_step import reference_step

    assert request.model is not None
    step = reference_step(request.model, request.workload, request.plan, describe_mesh(request))
    (folder / ARGUMENTS).write_text(json.dumps(argument_bytes(step.arguments)), encoding="utf-8")
    options: Any = {"exec_time_optimization_effort": EFFORTS[request.effort]}
    try:
        step.function.lower(*step.arguments).compile(compiler_options=options)
    except Exception as error:
        (folder / MESSAGE).write_text(str(error)[:300], encoding="utf-8")


def needed_bytes(folder: Path) -> int | None:
    """What a device needs at its peak, once the compiler has reported it."""
    reports = [path.read_text(encoding="utf-8") for path in folder.glob(_REPORT)]
    return next((int(found[1]) for text in reports if (found := _TOTAL.search(text))), None)


def argument_bytes(arguments: Any) -> dict[str, int]:
    """Bytes that the state and the batch take of one device, by where they lie."""
    import jax

    sizes = {"argument_bytes": 0, "host_argument_bytes": 0}
    for leaf in jax.tree.leaves(arguments):
        name = "host_argument_bytes" if leaf.sharding.memory_kind == "pinned_host" else "argument_bytes"
        sizes[name] += math.prod(leaf.sharding.shard_shape(leaf.shape)) * leaf.dtype.itemsize
    return sizes


_POLL_SECONDS = 0.2


def memory_plan(request: CompileRequest) -> dict[str, Any]:
    """Bytes of one device: ``needed_bytes`` at the peak, and of that what arguments take in HBM and host memory; or
    the compiler's ``message``. With the seconds that it took."""
    begin = time.monotonic()
    with TemporaryDirectory() as name:
        folder = Path(name)
        asked = (request, folder, os.getpid())
        child = multiprocessing.get_context("spawn").Process(target=plan_memory, args=asked, daemon=True)
        child.start()
        while child.is_alive() and needed_bytes(folder) is None:
            child.join(_POLL_SECONDS)
        child.kill()
        child.join()
        row = _found(folder)
    return row | {"seconds": round(time.monotonic() - begin, 1)}


def _found(folder: Path) -> dict[str, Any]:
    arguments, message = folder / ARGUMENTS, folder / MESSAGE
    row = json.loads(arguments.read_text(encoding="utf-8")) if arguments.exists() else {}
    if needed := needed_bytes(folder):
        return row | {"needed_bytes": needed}
    return row | {"message": message.read_text(encoding="utf-8") if message.exists() else "the compiler crashed"}


def main() -> None:
    """Draw, compile, append."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", type=Path)
    parser.add_argument("--kind", choices=KINDS, default="alike", help="which part of the table")
    parser.add_argument("--count", type=int, default=400, help="configurations to draw")
    parser.add_argument("--minutes", type=float, default=60.0, help="start no compilation after so many")
    parser.add_argument("--effort", choices=EFFORTS, default="full", help="of the compiler")
    options = parser.parse_args()
    lines = options.table.read_text(encoding="utf-8").splitlines() if options.table.exists() else []
    rows = [json.loads(line) for line in lines]
    known = {row["index"] for row in rows if row["kind"] == options.kind}
    end = time.monotonic() + 60 * options.minutes
    versions = compiler_versions()
    for index in range(options.count):
        if index in known:
            continue
        drawn = draw(options.kind, SEED, index)
        planned = memory_plan(_request(drawn, options.effort))
        row = {"kind": options.kind, "index": index, **_asked(drawn), **planned, "versions": versions}
        with options.table.open("a", encoding="utf-8") as table:
            table.write(json.dumps(row) + "\n")
        print(json.dumps(row), flush=True)
        if time.monotonic() > end:
            return


def _request(found: Drawn, effort: Effort) -> CompileRequest:
    flags = compiler_flags(found.hardware.chip.name, {}, found.plan)
    return make_request(found.hardware, found.plan, found.model, found.workload, flags=flags, effort=effort)


def _asked(found: Drawn) -> dict[str, Any]:
    work = found.workload
    return {
        "model": found.model.name, "hardware": found.hardware_name, "plan": str(found.plan),
        "global_batch": work.global_batch, "sequence_length": work.sequence_length,
    }  # fmt: skip


if __name__ == "__main__":
    main()
