"""Nodes of fewer GPUs than the maker's own: read, shown, and felt by what crosses them."""

from pathlib import Path

import pytest

from asap.core.errors import ConfigError, NotFoundError
from asap.experiments.create import Statement, create_experiment
from asap.hardware import Slice, load_chip, read_network, resize_node, resolve_hardware, set_network
from asap.hardware.instances import fabrics, find_instance, known_instances
from asap.models import Workload, find_architecture
from asap.plans import Plan
from asap.prediction.from_architecture import predict
from asap.prediction.predict_study import expect
from asap.reports.labels import describe_hardware
from asap.study.study import study_of
from tests.cases import cases

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
        nodes = resize_node(whole, each)
        assert nodes.devices == whole.devices
        assert nodes.domains == 8 // each
        now = communication(plan, nodes)
        assert now >= before
        if each == 1:
            assert now > before
            assert communication(plan, set_network(nodes, nodes.chip.network.bandwidth / 8)) > now
        before = now


def test_a_rack_stays_one_domain_whatever_a_launcher_starts_on_a_server():
    rack = resolve_hardware("gb200-72").slice
    assert resize_node(rack, 4).domain == rack.domain


LAUNCH = "torchrun --nproc_per_node 2 --nnodes 4 pretrain_gpt.py"
ARGUMENTS = (
    " --tensor-model-parallel-size 1 --num-layers 16 --hidden-size 2048 --num-attention-heads 16 --seq-length 2048"
    " --max-position-embeddings 2048 --micro-batch-size 1 --global-batch-size 32 --bf16 --vocab-size 32000"
)


@cases("hardware, said, network")
def test_what_is_said_of_nodes_goes_before_what_the_launcher_starts_on_each(tmp_path: Path, hardware, said, network):
    script = tmp_path / "train.sh"
    script.write_text(LAUNCH + ARGUMENTS + "\n")
    read = create_experiment("run", Statement(hardware=hardware, network=network), config=script).hardware
    assert said in describe_hardware(read, read.devices)
    assert read.network == (40e9 / 8 / 4 if network else None)


GBIT = 1e9 / 8


@cases("name, chip, gpus")
def test_a_count_before_a_machine_counts_machines_and_one_behind_it_gpus(name, chip, gpus):
    found = resolve_hardware(name).slice
    assert (found.chip.name, found.devices, found.slices) == (chip, gpus, 1)


def test_devices_say_how_many_machines():
    assert resolve_hardware("p5.48xlarge", devices=64).slice.devices == 64


@pytest.mark.parametrize("name", ["p5.48xlarge", "2x p5.48xlarge-8", "p5.48xlarge-0"])
def test_what_does_not_say_how_many_is_asked_back_in_words_that_keep_the_machine(name):
    with pytest.raises(ConfigError) as raised:
        resolve_hardware(name)
    assert str(raised.value.hint).startswith("write 8x p5.48xlarge")


def test_a_machine_that_is_not_known_is_told_from_those_that_are_near():
    with pytest.raises(NotFoundError, match="unknown machine") as raised:
        resolve_hardware("4x p5.24xlarge")
    assert "p5.48xlarge" in str(raised.value.hint)
    with pytest.raises(NotFoundError, match="unknown chip"):
        resolve_hardware("8x abacus")


def test_a_machine_brings_its_own_network():
    found = resolve_hardware("2x p4d.24xlarge")
    assert found.notes == ("p4d.24xlarge: 8 NVIDIA A100 SXM 40 GB, 400 Gbit/s between machines",)
    makers, rented = load_chip("a100-40gb").network, found.slice.chip.network
    assert rented.stated
    assert rented.bandwidth == 400 * GBIT / 8
    assert rented.bandwidth < makers.bandwidth
    assert rented.latency == fabrics()["efa"].latency > makers.latency


@pytest.mark.parametrize("name", known_instances())
def test_every_machine_has_a_known_chip_and_a_physical_network(name):
    instance = find_instance(name)
    chip = instance.machine
    assert 3 <= instance.network / instance.gpus <= 800
    assert chip.scaleup.domain == instance.gpus
    assert chip.network.bandwidth < chip.scaleup.bandwidth


@cases("text, rate")
def test_a_rate_is_that_of_one_device(text, rate):
    assert read_network(text, load_chip("h100")) == pytest.approx(rate)


@cases("text, chip, said")
def test_a_rate_of_nothing_in_particular_is_asked_back(text, chip, said):
    with pytest.raises(ConfigError, match=said):
        read_network(text, load_chip(chip))


def test_a_stated_network_decides_what_crosses_nodes_and_is_not_doubted():
    overrides = ["model=llama3.1-8b"]
    said = {"plan": "replica=16 remat=full microbatches=1", "global_batch": 16, "sequence_length": 4096}
    steps, notes = [], []
    for network in (None, "1x100Gb"):
        run = create_experiment("run", Statement(hardware="h100-16", network=network, **said), overrides=overrides)
        run = run.model_copy(update={"workload": run.workload.model_copy(update={"framework": "Megatron-LM"})})
        (found,) = expect(study_of(run), [run.plan])
        steps.append(found.step_time.value)
        notes.append([note for note in found.notes if "Not stated: network" in note])
    assert steps[1] > 1.5 * steps[0]
    assert (len(notes[0]), notes[1]) == (1, [])
    with pytest.raises(ConfigError, match="needs the chip"):
        create_experiment("run", Statement(network="8x400Gb"))
