import math

from hypothesis import given
from hypothesis import strategies as st

from asap.plans import Mesh
from asap.plans.torus import aligned_axes, physical_layout, split_axes


def test_axes_that_match_the_torus_own_it():
    assert aligned_axes(Mesh(data=4, model=4), (4, 4)) == {"data", "model"}
    assert aligned_axes(Mesh(data=16), (4, 4)) == {"data"}
    assert aligned_axes(Mesh(data=64, model=8), (8, 8, 8)) == {"data", "model"}


def test_axes_that_share_a_physical_axis_are_split():
    assert split_axes(Mesh(data=4, seq=2, model=2), (4, 4)) == {"seq", "model"}
    assert split_axes(Mesh(data=8, seq=16, model=2), (16, 16)) == {"data", "model"}


@given(st.permutations(["replica", "data", "seq", "model", "expert", "stage"]))
def test_names_of_axes_do_not_matter(names):
    first, second = names[:2]
    assert aligned_axes(Mesh(**{first: 8, second: 4}), (4, 8)) == {first, second}


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
