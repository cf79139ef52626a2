import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asap.plans.replica_groups import NamedMesh, joined, replica_groups, source_target_pairs


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
