import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asap.plans import Mesh
from asap.plans.replica_groups import NamedMesh, joined, replica_groups, source_target_pairs
from asap.plans.torus import physical_layout, split_axes


def test_axes_that_match_the_torus_own_it():
    assert not split_axes(Mesh(data=4, model=4), (4, 4)) | split_axes(Mesh(data=16), (4, 4))
    assert not split_axes(Mesh(data=64, model=8), (8, 8, 8)) | split_axes(Mesh(replica=8, data=64), (4, 8, 8))


def test_axes_that_share_a_physical_axis_are_split():
    assert split_axes(Mesh(data=4, seq=2, model=2), (4, 4)) == {"seq", "model"}
    assert split_axes(Mesh(data=8, seq=16, model=2), (16, 16)) == {"data", "model"}


@given(st.lists(st.sampled_from([1, 2, 4, 8]), min_size=1, max_size=3).map(tuple))
def test_one_axis_over_everything_is_aligned(topology):
    total = 1
    for length in topology:
        total *= length
    assert split_axes(Mesh(data=total), topology) == frozenset()


def test_a_layout_says_what_lies_on_each_physical_axis():
    assert physical_layout(Mesh(data=16, model=4), (4, 4, 4)) == ((("model", 4),), (("data", 4),), (("data", 4),))
    assert physical_layout(Mesh(data=4, seq=2, model=2), (4, 4)) == ((("data", 4),), (("seq", 2), ("model", 2)))
    assert physical_layout(Mesh(data=8), (2, 2)) == ((("data", 2),), (("data", 2),))


@given(st.lists(st.sampled_from([2, 4, 8, 16]), min_size=1, max_size=3), st.data())
def test_a_layout_uses_every_chip_once(topology, data):
    left, degrees = math.prod(topology), {}
    for axis in ("data", "seq", "model"):
        degrees[axis] = data.draw(st.sampled_from([d for d in (1, 2, 4, 8, 16, 32, 64) if left % d == 0]))
        left //= degrees[axis]
    layout = physical_layout(Mesh(**degrees, stage=left), tuple(topology))
    assert [math.prod(degree for _, degree in lying) for lying in layout] == topology
    for axis, degree in degrees.items():
        assert math.prod(part for lying in layout for name, part in lying if name == axis) == degree


def test_three_ways_of_printing_the_same_groups():
    listed = replica_groups("x, replica_groups={{0,4},{1,5},{2,6},{3,7}}, y", 8)
    iota = replica_groups("x, replica_groups=[4,2]<=[2,4]T(1,0), y", 8)
    named = replica_groups("x, replica_groups=mesh['a'=2,'b'=4] {'a'}, y", 8)
    assert listed == iota == named == ((0, 4), (1, 5), (2, 6), (3, 7))


@given(st.lists(st.integers(1, 4), min_size=1, max_size=4), st.randoms(use_true_random=False))
def test_iota_groups_are_a_reshape_and_a_transpose(dims, random):
    order = list(range(len(dims)))
    random.shuffle(order)
    members = dims[order[-1]]
    shape = f"[{int(np.prod(dims)) // members},{members}]"
    text = f"replica_groups={shape}<=[{','.join(map(str, dims))}]T({','.join(map(str, order))})"
    expected = np.arange(np.prod(dims)).reshape(dims).transpose(order).reshape(-1, members)
    assert replica_groups(text, int(np.prod(dims))) == tuple(map(tuple, expected.tolist()))


def test_a_part_of_a_mesh_axis_can_be_joined():
    assert replica_groups("replica_groups=mesh['a'=8] {'a':(2)2}", 8) == ((0, 2), (1, 3), (4, 6), (5, 7))


def test_the_devices_of_a_mesh_may_be_reordered():
    transposed = replica_groups("replica_groups=mesh['a'=2,'b'=4], device_ids=([4,2]T(1,0)) {'b'}, x", 8)
    listed = replica_groups("replica_groups=mesh['a'=2,'b'=4], device_ids=[0,2,4,6,1,3,5,7] {'b'}, x", 8)
    assert transposed == listed == ((0, 2, 4, 6), (1, 3, 5, 7))


def test_no_groups_mean_all_devices_and_unknown_text_means_nothing():
    assert replica_groups("replica_groups={}, x", 4) == ((0, 1, 2, 3),)
    assert replica_groups("replica_groups=something", 4) is None


@pytest.mark.parametrize(
    "text", ["[99,99]<=[9999999999]", "[1,0]<=[4]", "{{0,9}}", f"[1,{'9' * 5000}]<=[1]", "mesh['a'=9999999999] {}"]
)
def test_groups_that_no_job_has_are_not_said(text):
    assert joined(f"replica_groups={text}, x", (4, 5), 4) == ()


def test_groups_are_named_after_the_mesh_axes_along_which_they_lie():
    mesh = NamedMesh(("data", "seq", "model"), (2, 2, 4))
    assert mesh.axes((0, 1, 2, 3)) == ("model",)
    assert mesh.axes((0, 8)) == ("data",)
    assert mesh.axes(range(16)) == ("data", "seq", "model")
    assert mesh.covers((0, 1, 2, 3), ("model",))
    assert not mesh.covers((0, 2), ("model",))


@pytest.mark.parametrize("axis", ["data", "seq", "model"])
def test_the_groups_along_an_axis_cover_all_devices_once(axis):
    mesh = NamedMesh(("data", "seq", "model"), (2, 3, 4))
    groups = mesh.groups(axis)
    assert sorted(device for group in groups for device in group) == list(range(24))
    assert {mesh.axes(group) for group in groups} == {(axis,)}


def test_pairs_of_a_permute():
    assert source_target_pairs("source_target_pairs={{0,1},{1,0}}, x") == ((0, 1), (1, 0))
    assert source_target_pairs("nothing") is None
