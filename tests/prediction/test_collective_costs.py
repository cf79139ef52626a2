from dataclasses import fields, replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asap.prediction.step_model.collectives import (
    Channel,
    all_gather,
    all_reduce,
    all_to_all,
    reduce_scatter,
    send,
    through_few_ports,
)
from asap.prediction.step_model.inputs import HardwareInputs
from asap.prediction.step_model.torus import links_of

members = st.integers(2, 512)
sizes = st.floats(1.0, 1e12)


def ring(n: int, bandwidth: float = 1e11, latency: float = 0.0) -> Channel:
    """A ring inside one domain, whose every hop takes so long."""
    return Channel(n, bandwidth, latency * (n - 1), latency, inside=n, fabric=bandwidth, port=bandwidth, farthest=n / 2)


@given(members, sizes)
def test_all_gather_moves_all_but_the_own_shard(n, size):
    assert all_gather(size, ring(n)) == pytest.approx(size * (n - 1) / n / 1e11)


@given(members, sizes)
def test_reduce_scatter_costs_what_an_all_gather_costs(n, size):
    assert reduce_scatter(size, ring(n)) == all_gather(size, ring(n))


@given(members, sizes)
def test_all_reduce_is_reduce_scatter_and_all_gather(n, size):
    assert all_reduce(size, ring(n)) == pytest.approx(reduce_scatter(size, ring(n)) + all_gather(size, ring(n)))


@pytest.mark.parametrize("collective", [all_gather, reduce_scatter, all_reduce, send, partial(all_to_all, torus=0.0)])
def test_one_member_has_nothing_to_say(collective):
    assert collective(1e9, ring(1, latency=1e-5)) == 0


@given(members)
def test_latency_counts_each_hop(n):
    assert all_gather(0.0, ring(n, latency=1e-6)) == pytest.approx(1e-6 * (n - 1))


@given(st.integers(8, 512), sizes)
def test_all_to_all_travels_further_on_a_torus(n, size):
    assert all_to_all(size, ring(n), 1.0) >= all_to_all(size, ring(n), 0.0)


@given(members, sizes, st.floats(1.1, 10.0))
def test_bandwidth_is_bytes_per_second(n, size, factor):
    assert all_gather(size, ring(n, 1e11)) == pytest.approx(factor * all_gather(size, ring(n, 1e11 * factor)))


def two_nodes(port: float = 1e10) -> Channel:
    """Sixteen devices on two nodes of eight."""
    return Channel(16, 8 * port, 0.0, 0.0, inside=8, fabric=4e11, port=port)


@pytest.mark.parametrize(("size", "channel", "crossing", "seconds"), [
    (16e9, two_nodes(), {}, 8e9 / 1e10), (16e9, two_nodes(), {"crossing": 0.25}, 2e9 / 1e10),
    (0.0, ring(64, latency=1e-6), {}, 1e-6), (16e9, two_nodes(port=1e12), {}, 7e9 / 4e11),
], ids=["leaves through the own port", "a node that forwards gets each once", "to all at once", "inside, the fabric"]
)  # fmt: skip
def test_what_an_all_to_all_takes(size, channel, crossing, seconds):
    assert all_to_all(size, channel, 0.0, **crossing) == pytest.approx(seconds)


@given(sizes)
def test_all_to_all_over_three_axes_goes_no_further_than_over_one_of_them(size):
    cube = replace(ring(512, bandwidth=3e11), farthest=3 * 8 / 2)
    assert all_to_all(size, cube, 1.0) == pytest.approx(all_to_all(size, ring(8), 1.0) * (511 / 512) / (7 / 8))


def test_few_ports_slow_what_leaves_a_node():
    assert through_few_ports(two_nodes(), 1.0, 1e10).bandwidth == 1.5e10
    assert through_few_ports(two_nodes(), 1.0, 8e10).bandwidth == 8e10
    assert through_few_ports(two_nodes(), 0.0, 1e10).bandwidth == 8e10
    assert through_few_ports(ring(8), 1.0, 1e10).bandwidth == 1e11


DEGREES = st.sampled_from([1, 2, 3, 4, 6, 8, 16, 32, 48, 64, 256, 1024])


@given(st.tuples(*[st.sampled_from([1, 2, 4, 6, 8, 16])] * 3), st.lists(st.tuples(DEGREES, DEGREES), min_size=1))
def test_one_machine_and_many_have_the_same_links(sides, groups):
    members, inner = np.array(groups, dtype=float).T
    one, many = machine(*map(float, sides)), machine(*[np.full(len(members), float(side)) for side in sides])
    assert np.array_equal(links_of(one, members, inner), links_of(many, members, inner))


def machine(x, y, z) -> HardwareInputs:
    ones = {field.name: 1.0 for field in fields(HardwareInputs)}
    return HardwareInputs(**ones | {"torus_x": x, "torus_y": y, "torus_z": z, "links_x": 2.0, "links_z": 2.0})
