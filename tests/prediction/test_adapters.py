"""Low-rank adapters beside frozen weights, held to published measurements and to what must hold of any."""

import csv
from pathlib import Path
from statistics import median

import pytest

from asap.hardware import load_chip
from asap.hardware.slices import Slice
from asap.models import Workload, find_architecture
from asap.plans import Plan
from asap.prediction.from_architecture import predict

TABLE = Path(__file__).parents[1] / "data" / "measurements" / "adapters.csv"
ROWS = list(csv.DictReader(line for line in TABLE.read_text().splitlines() if not line.startswith("#")))


def prediction(model="qwen1.5-14b", devices=1, sequence=2048, **said):
    sharding = {"framework": "DeepSpeed", "zero_stage": 3} if devices > 1 else {"framework": "Accelerate DDP"}
    common = {"sequence_length": sequence, "precision": "bf16", "attention": "flash"}
    workload = Workload(global_batch=8 * devices, **common, **sharding, **said)
    plan = Plan.parse(f"data={devices} remat=full microbatches=8")
    return predict(plan, find_architecture(model), workload, Slice(load_chip("a100-80gb"), devices))[0]


def measured(row):
    return prediction(
        row["model"], int(row["devices"]), int(row["sequence"]), adapter_rank=64, frozen_precision=row["frozen"],
        weight_precision="bf16" if row["devices"] == "1" else None,
    )  # fmt: skip


def test_steps_and_memory_are_about_those_that_were_published():
    found = [(measured(row), float(row["seconds"]), float(row["gigabytes"]) * 1e9) for row in ROWS]
    assert all(one.step_time.low < seconds < one.step_time.high for one, seconds, _ in found)
    assert median(abs(seconds / one.step_time.value - 1) for one, seconds, _ in found) < 0.10
    assert all(one.memory.total.low < size < one.memory.total.high for one, _, size in found)
    assert median(abs(size / one.memory.total.value - 1) for one, _, size in found) < 0.20


def test_frozen_weights_need_less_time_and_memory_and_fewer_bits_need_less_memory_and_more_time():
    whole, frozen, four_bits = (
        prediction(),
        prediction(adapter_rank=16),
        prediction(adapter_rank=16, frozen_precision="nf4"),
    )
    assert frozen.step_time.value < min(whole.step_time.value, four_bits.step_time.value)
    assert four_bits.memory.total.value < frozen.memory.total.value < whole.memory.total.value


@pytest.mark.parametrize("said", ["q_proj,v_proj", ["q_proj", "v_proj"], "all-linear"])
def test_more_adapters_and_a_higher_rank_train_more(said):
    sizes = [prediction(adapter_rank=rank, adapted=said).memory.total.value for rank in (4, 64, 1024)]
    everywhere = prediction(adapter_rank=64).memory.total.value
    assert sizes[0] < sizes[1] < sizes[2]
    assert sizes[1] == everywhere if said == "all-linear" else sizes[1] < everywhere
