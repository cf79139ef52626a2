"""Nodes of fewer GPUs than the maker's own: read, shown, and felt by what crosses them."""

from pathlib import Path

import pytest

from asap.experiments.create import Statement, create_experiment
from asap.hardware import Slice, resolve_hardware, with_network, with_node
from asap.models import Workload, find_architecture
from asap.plans import Plan
from asap.prediction import predict
from asap.reports.labels import describe_hardware

MODEL = find_architecture("tinyllama-1.1b")
WORK = Workload(global_batch=32, sequence_length=4096, precision="bf16", framework="torchtitan", attention="flash")
PLANS = ("data=8", "replica=8", "replica=4 model=2", "replica=2 data=4", "model=8", "data=2 seq=4", "stage=4 data=2")


def communication(plan: str, hardware: Slice) -> float:
    """Busy seconds of all collectives of a step."""
    (found,) = predict(Plan.parse(f"{plan} microbatches=4 remat=full"), MODEL, WORK, hardware)
    return sum(part.busy_s for part in found.parts if part.axis is not None)


@pytest.mark.parametrize("name", ["4x2xA800", "4 x 2 x a800-80gb", "4x a800-2"])
def test_nodes_times_gpus(name: str):
    found = resolve_hardware(name).slice
    assert (found.devices, found.domain, found.domains) == (8, 2, 4)


@pytest.mark.parametrize("plan", PLANS)
def test_smaller_nodes_and_slower_networks_never_leave_crossing_collectives_as_they_were(plan: str):
    whole = resolve_hardware("a800-8").slice
    before = communication(plan, whole)
    for each in (4, 2, 1):
        nodes = with_node(whole, each)
        assert nodes.devices == whole.devices
        assert nodes.domains == 8 // each
        now = communication(plan, nodes)
        assert now >= before
        if each == 1:
            assert now > before
            assert communication(plan, with_network(nodes, nodes.chip.network.bandwidth / 8)) > now
        before = now


def test_a_rack_stays_one_domain_whatever_a_launcher_starts_on_a_server():
    rack = resolve_hardware("gb200-72").slice
    assert with_node(rack, 4).domain == rack.domain


LAUNCH = "torchrun --nproc_per_node 2 --nnodes 4 pretrain_gpt.py"
ARGUMENTS = (
    " --tensor-model-parallel-size 1 --num-layers 16 --hidden-size 2048 --num-attention-heads 16 --seq-length 2048"
    " --max-position-embeddings 2048 --micro-batch-size 1 --global-batch-size 32 --bf16 --vocab-size 32000"
)


@pytest.mark.parametrize(
    ("hardware", "said", "network"), [("a800-8", "4 nodes of 2", None), ("2x4xA800", "2 nodes of 4", "40Gb/node")]
)
def test_what_is_said_of_nodes_goes_before_what_the_launcher_starts_on_each(tmp_path: Path, hardware, said, network):
    script = tmp_path / "train.sh"
    script.write_text(LAUNCH + ARGUMENTS + "\n")
    read = create_experiment("run", Statement(hardware=hardware, network=network), config=script).hardware
    assert said in describe_hardware(read, read.devices)
    assert read.network == (40e9 / 8 / 4 if network else None)
