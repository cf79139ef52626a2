from itertools import product

import numpy as np
import pytest

from asap.mapping.device_order import places
from asap.mapping.language.parse import parse
from asap.mapping.language.program import Order
from asap.mapping.sharding import shardings
from tests.cases import kept
from tests.mapping.programs import DENSE, EXPERTS


def laid(text, tensor, target=DENSE, keyword="shard"):
    """Axes of each dimension by range of layers."""
    program, wrong = parse(text)
    assert wrong == ()
    return {
        found.place.layers: tuple(split.axes for split in found.splits)
        for found in shardings(target, program, keyword)
        if found.place.tensor.name == tensor
    }


def test_without_lines_tensors_lie_as_under_the_plan():
    assert laid("mesh data=4 model=4", "query") == {(0, 79): (("data",), ("model",), ())}
    assert laid("mesh data=4 seq=2 model=2", "embedding") == {None: (("model",), ("data", "seq"))}
    assert laid("mesh model=16", "key") == {(0, 79): ((), (), ())}
    assert laid("mesh expert=8 data=2", "expert_up", EXPERTS) == {(0, 31): (("expert",), ("data",), ())}


def test_a_line_takes_its_axes_from_the_other_dimensions():
    assert laid("mesh data=4 model=4\nshard head by embed over model", "head") == {None: (("model",), ())}


LINES = kept(__file__)["LINES"]


@pytest.mark.parametrize("turn", range(5))
def test_the_line_that_covers_less_holds_in_any_order(turn):
    found = laid("\n".join(LINES[turn:] + LINES[:turn]), "query")
    first = {layers: axes[0] for layers, axes in found.items()}
    assert first == {(0, 3): ("data",), (4, 4): (), (5, 79): ("data", "model")}


def test_activations_are_constrained_by_layer():
    text = "mesh data=4 model=4\nconstrain residual by sequence over model in layers 0..1"
    found = laid(text, "residual", keyword="constrain")
    assert found == {(0, 1): (("data",), ("model",), ()), (2, 79): (("data",), (), ("model",))}


def test_no_axis_is_ever_used_twice_by_the_usual_rules():
    for degrees in product((1, 2), repeat=4):
        mesh = "mesh " + " ".join(f"{a}={d}" for a, d in zip(("data", "seq", "model", "expert"), degrees, strict=True))
        for found in shardings(EXPERTS, parse(mesh)[0], "shard"):
            axes = [axis for split in found.splits for axis in split.axes]
            assert len(axes) == len(set(axes))


def order(text, topology=(4, 4)):
    decision = parse(f"order {text}")[0].decisions[0]
    assert isinstance(decision, Order)
    return places(decision.by, topology)


def test_rows_columns_and_blocks():
    assert order("row", (2, 3)).tolist() == [[0, 1, 2], [3, 4, 5]]
    assert order("col", (2, 3)).tolist() == [[0, 2, 4], [1, 3, 5]]
    assert order("block(2, 2)").tolist() == [[0, 1, 4, 5], [2, 3, 6, 7], [8, 9, 12, 13], [10, 11, 14, 15]]


@pytest.mark.parametrize("topology", [(4, 4), (8, 8), (4, 4, 8), (2, 6)])
def test_rings_along_folded_axes_take_two_hops_at_most(topology):
    found = order("fold", topology)
    assert sorted(found.flat) == list(range(found.size))
    for axis, length in enumerate(topology):
        along = np.moveaxis(found, axis, 0).reshape(length, -1)[:, 0]
        ring = np.argsort(along)
        assert max(abs(a - b) for a, b in zip(ring, np.roll(ring, 1), strict=True)) <= 2


def test_maps_calculate_like_python_and_take_one_branch():
    assert order("f(i, j) = i * 4 + (i % 2 ? 3 - j : j)").tolist()[1] == [7, 6, 5, 4]
    assert order("f(i, j) = (j - 3) / 2 + (0 - 1) % 4").tolist()[0] == [1, 2, 2, 3]
    assert order("f(i, j) = j ? 4 / j : 0").tolist()[0] == [0, 4, 2, 1]
    assert order("f(i, j) = (i < 2) + (j >= 3) + (i == j) + (i != j)").tolist()[0] == [2, 2, 2, 3]
