import pytest
from hypothesis import given
from hypothesis import strategies as st
from simulate import interconnect_of

from asap.compiler.schedule.interconnect import NETWORK
from asap.hardware import resolve_hardware

MIB = 2**20


def rows(length, width):
    return tuple(tuple(range(row * width, (row + 1) * width)) for row in range(length))


def columns(length, width):
    return tuple(tuple(range(column, length * width, width)) for column in range(width))


def test_a_torus_axis_that_wraps_gathers_over_both_directions():
    ring, line = interconnect_of(resolve_hardware("v5e-256").slice), interconnect_of(resolve_hardware("v5e-16").slice)
    link = ring.hardware.chip.torus.link_bandwidth
    assert ring.gather_bandwidth(rows(16, 16)) == 2 * link
    assert line.gather_bandwidth(rows(4, 4)) == link
    assert ring.gather_bandwidth((tuple(range(256)),)) == 4 * link


def test_groups_that_leave_out_every_other_chip_share_their_links():
    interconnect = interconnect_of(resolve_hardware("v5e-256").slice)
    strided = tuple(tuple(range(row * 16 + first, (row + 1) * 16, 2)) for row in range(16) for first in (0, 1))
    link = interconnect.hardware.chip.torus.link_bandwidth
    assert interconnect.gather_bandwidth(strided) == pytest.approx(2 * link / 2)


def test_an_all_reduce_takes_two_gathers():
    interconnect = interconnect_of(resolve_hardware("v5p-128").slice)
    groups = (tuple(range(64)),)
    assert interconnect.seconds("all-reduce", MIB, groups) == 2 * interconnect.seconds("all-gather", MIB, groups)


def test_an_all_to_all_on_a_ring_is_bound_by_its_busiest_link():
    interconnect = interconnect_of(resolve_hardware("v5e-256").slice)
    link = interconnect.hardware.chip.torus.link_bandwidth
    size = 256 * MIB
    assert interconnect.seconds("all-to-all", size, rows(16, 16)) == pytest.approx(size * 16 / 8 / link, rel=0.15)


def test_a_permute_to_the_neighbour_is_one_message_and_across_a_line_is_many():
    interconnect = interconnect_of(resolve_hardware("v5e-16").slice)
    link = interconnect.hardware.chip.torus.link_bandwidth
    near = interconnect.permute_seconds(MIB, ((0, 1), (1, 2), (2, 3)))
    far = interconnect.permute_seconds(MIB, ((0, 3), (1, 2), (2, 3)))
    assert near == pytest.approx(MIB / link, rel=0.1)
    assert far > 1.9 * near
    assert interconnect.permute_seconds(MIB, ((0, 0),)) == 0


def test_between_slices_the_network_decides():
    interconnect = interconnect_of(resolve_hardware("v5e-16", slices=2).slice)
    network = interconnect.hardware.chip.network
    groups = tuple((chip, chip + 16) for chip in range(16))
    assert interconnect.seconds("all-gather", MIB, groups) == MIB / 2 / network.bandwidth + network.latency
    assert interconnect.directions((0, 16)) == {NETWORK: 1.0}


@given(st.integers(0, 2**34), st.sampled_from(["all-gather", "all-reduce", "reduce-scatter", "all-to-all"]))
def test_more_bytes_never_take_less_time(size, kind):
    interconnect = interconnect_of(resolve_hardware("v5e-16").slice)
    assert interconnect.seconds(kind, size, columns(4, 4)) <= interconnect.seconds(kind, size + 1, columns(4, 4))


def test_one_device_sends_nothing():
    assert interconnect_of(resolve_hardware("v5e-16").slice).seconds("all-gather", MIB, ((3,),)) == 0
