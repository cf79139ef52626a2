"""Machines of clouds as hardware."""

import pytest

from asap.core.errors import ConfigError, NotFoundError
from asap.hardware import load_chip, resolve_hardware
from asap.hardware.instances import fabrics, find_instance, known_instances

GBIT = 1e9 / 8


@pytest.mark.parametrize(
    ("name", "chip", "gpus"),
    [
        ("8x p5.48xlarge", "h100", 64),
        ("p4d.24xlarge-32", "a100-40gb", 32),
        ("16x Standard_ND96isr_H100_v5", "h100", 128),
        ("4 x A3-MEGAGPU-8G", "h100", 32),
        ("2x BM.GPU.MI300X.8", "mi300x", 16),
        ("a2-megagpu-16g-32", "a100-40gb", 32),
        ("p5.48xlarge-4", "h100", 4),
    ],
)
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
    assert instance is not None
    chip = instance.machine
    assert chip.scaleup is not None
    assert 3 <= instance.network / instance.gpus <= 800
    assert chip.scaleup.domain == instance.gpus
    assert chip.network.bandwidth < chip.scaleup.bandwidth
