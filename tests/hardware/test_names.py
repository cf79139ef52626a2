"""Cloud names, topologies and counts resolved to slices."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asap.core.errors import ConfigError, NotFoundError
from asap.hardware import default_topology, known_chips, load_chip, parse_topology, resolve_hardware
from asap.hardware.slices import format_topology
from tests.cases import cases

TPUS = [chip for chip in map(load_chip, known_chips()) if chip.torus]
GPUS = [chip for chip in map(load_chip, known_chips()) if chip.scaleup]


@cases("name, shape, chips, devices")
def test_names_of_the_clouds(name: str, shape: str, chips: int, devices: int) -> None:
    found = resolve_hardware(name).slice
    assert (found.shape, found.chips, found.devices) == (shape, chips, devices)


def test_a_count_before_a_sized_tpu_is_slices() -> None:
    found = resolve_hardware("16x v5e-256").slice
    assert (found.slices, found.chips, found.shape) == (16, 4096, "16x16")


@pytest.mark.parametrize("given_devices", [None, 512])
def test_the_topology_decides_and_both_readings_are_shown(given_devices: int | None) -> None:
    found = resolve_hardware("v5p-512", topology="8x8x8", devices=given_devices)
    assert (found.slice.chips, found.slice.devices) == (512, 512)
    assert "256 chips" in found.notes[0]
    assert "8x8x8 decides: 512 chips" in found.notes[0]
    assert "taken for 2 GPUs; 2 nodes of 8 are 2x8x" in resolve_hardware("2xMI300X").notes[0]
    assert not resolve_hardware("8xMI300X").notes


def test_the_devices_decide_where_there_is_no_topology() -> None:
    found = resolve_hardware("v5p-512", devices=512)
    assert found.slice.shape == "8x8x8"
    assert "devices decides" in found.notes[0]
    assert "TensorCores: 256 chips (not 512)" in resolve_hardware("v5p-512").notes[0]
    assert resolve_hardware("v5e-256").notes == ()


@cases("arguments, shape, chips")
def test_a_bare_chip_with_a_topology_or_devices(arguments, shape: str, chips: int) -> None:
    found = resolve_hardware(**arguments).slice
    assert (found.shape, found.chips) == (shape, chips)


@cases("arguments, complaint")
def test_contradictions_are_one_clear_line(arguments, complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint) as caught:
        resolve_hardware(**arguments)
    assert "\n" not in str(caught.value)


def test_an_unknown_chip_in_a_name_is_named() -> None:
    for name, chip in (("v99-8", "v99"), ("8xRTX3080", "RTX3080")):
        with pytest.raises(NotFoundError, match=rf"unknown chip '{chip}'"):
            resolve_hardware(name)


@given(st.sampled_from(TPUS), st.integers(1, 128))
def test_names_count_cores_and_round_trip(chip, cubes: int) -> None:
    chips = 64 * cubes
    shape = default_topology(chip, chips)
    if shape is None:
        return
    found = resolve_hardware(f"{chip.name}-{chips * chip.cores}")
    assert found.slice.chip == chip
    assert found.slice.topology == shape
    again = resolve_hardware(f"{chip.name}-{format_topology(shape)}", devices=found.slice.devices)
    assert again.slice == found.slice


@given(st.sampled_from(GPUS), st.integers(1, 10_000))
def test_gpu_names_round_trip(chip, count: int) -> None:
    assert resolve_hardware(f"{chip.name}-{count}").slice == resolve_hardware(f"{count}x {chip.title}").slice
    assert resolve_hardware(chip.name, devices=count).slice.chips == count


@given(st.sampled_from(TPUS), st.integers(1, 10_000))
def test_a_default_topology_has_its_chips_and_fits_the_chip(chip, chips: int) -> None:
    shape = default_topology(chip, chips)
    if shape is not None:
        assert math.prod(shape) == chips <= chip.torus.pod
        assert len(shape) == chip.torus.axes


@given(st.lists(st.integers(1, 64), min_size=1, max_size=4).map(tuple))
def test_topology_text_round_trips(topology: tuple[int, ...]) -> None:
    assert parse_topology(format_topology(topology)) == topology == parse_topology(topology)
    assert parse_topology(f" {format_topology(topology).upper()} ") == topology


@pytest.mark.parametrize("text", ["x", "4x", "4xx4", "0x4", "-4x4", "4,4", "4x4\n4", "٤x٤", "9" * 5000])
def test_what_is_no_topology_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="not a topology"):
        parse_topology(text)


ODD_NAMES = st.text(max_size=30) | st.from_regex(
    r"[0-9]{0,4}x?(v5p|v5e|h100|tpu7x|A100)[-x: ]?[0-9x]{0,9}", fullmatch=True
)


@given(ODD_NAMES, st.text("x0123456789", max_size=8), st.integers(-5, 5), st.none() | st.integers(-5, 600))
def test_any_text_resolves_or_is_refused_in_one_line(name: str, topology: str, slices: int, devices) -> None:
    refusal = ""
    try:
        resolve_hardware(name, topology, slices, devices)
    except (ConfigError, NotFoundError) as error:
        refusal = str(error)
    assert "\n" not in refusal


@pytest.mark.parametrize("name", ["128x h100-8", "128xh100-8", "h100-8x128"])
def test_machines_of_gpus_are_slices(name):
    found = resolve_hardware(name).slice
    assert (found.devices, found.slices) == (1024, 128)
    assert found == resolve_hardware("h100-8", slices=128).slice


def test_gpus_in_all_are_one_slice():
    assert (resolve_hardware("h100-1024").slice.devices, resolve_hardware("h100-1024").slice.slices) == (1024, 1)
    assert resolve_hardware("h100-1024", slices=128, devices=1024).slice.chips_per_slice == 8


@cases("name, slices, asked")
def test_a_name_with_two_meanings_is_asked_back(name, slices, asked):
    with pytest.raises(ConfigError, match=asked) as caught:
        resolve_hardware(name, slices=slices)
    assert "x h100-8" in str(caught.value)
