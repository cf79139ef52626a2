"""Slices: sizes, wrap-around links, bandwidths, domains."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asap.core.errors import ConfigError
from asap.hardware import Slice, load_chip
from tests.cases import cases

CUBED = st.sampled_from(["v4", "v5p", "tpu7x"])
FLAT = st.sampled_from(["v5e", "v6e"])


def slice_of(chip: str, *topology: int, slices: int = 1) -> Slice:
    return Slice(load_chip(chip), math.prod(topology), topology, slices)


@given(CUBED, st.tuples(*[st.integers(1, 4)] * 3), st.integers(1, 4))
def test_whole_cubes_wrap_on_every_axis(chip: str, cubes: tuple[int, ...], slices: int) -> None:
    found = slice_of(chip, *(4 * side for side in cubes), slices=slices)
    assert found.wraps == (True, True, True)
    assert found.chips == 64 * math.prod(cubes) * slices
    assert found.devices == found.chips * found.chip.devices == found.devices_per_slice * slices


@given(CUBED, st.tuples(*[st.integers(1, 12)] * 3).filter(lambda t: any(side % 4 for side in t)))
def test_anything_but_whole_cubes_wraps_nowhere(chip: str, topology: tuple[int, ...]) -> None:
    assert slice_of(chip, *topology).wraps == (False, False, False)


@given(FLAT, st.tuples(*[st.integers(1, 16)] * 2))
def test_a_flat_torus_wraps_on_the_full_sixteen_only(chip: str, topology: tuple[int, ...]) -> None:
    assert slice_of(chip, *topology).wraps == tuple(side == 16 for side in topology)


@given(FLAT, st.tuples(*[st.sampled_from([4, 8, 16])] * 2))
def test_a_ring_has_twice_the_bandwidth_of_a_line(chip: str, topology: tuple[int, ...]) -> None:
    found = slice_of(chip, *topology)
    link = found.chip.torus.link_bandwidth
    assert [found.axis_bandwidth(a) for a in (0, 1)] == [link * (2 if w else 1) for w in found.wraps]


@cases("chip, topology, devices")
def test_jax_devices_of_a_chip(chip: str, topology: tuple[int, ...], devices: int) -> None:
    assert slice_of(chip, *topology).devices == devices


@given(st.sampled_from(["h100", "gb200", "mi300x"]), st.integers(1, 1000))
def test_gpus_fill_domains(chip: str, count: int) -> None:
    found = Slice(load_chip(chip), count)
    assert found.domain <= found.chip.scaleup.domain
    assert (found.domains - 1) * found.domain < count <= found.domains * found.domain
    assert found.wraps == ()


def test_a_tpu_slice_is_its_own_domain() -> None:
    found = slice_of("v5e", 16, 16, slices=4)
    assert (found.domain, found.domains) == (256, 4)


@cases("chip, chips, topology, complaint")
def test_what_cannot_be_wired_is_refused(chip: str, chips: int, topology, complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        Slice(load_chip(chip), chips, topology)


def test_gpus_have_no_torus_axis() -> None:
    with pytest.raises(ConfigError, match="no torus"):
        Slice(load_chip("h100"), 8).axis_bandwidth(0)
