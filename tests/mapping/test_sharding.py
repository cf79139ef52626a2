from itertools import product

import pytest

from asap.mapping.language.parse import parse
from asap.mapping.sharding import shardings
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


LINES = [
    "mesh data=4 model=4",
    "shard * by embed over none",
    "shard query by embed over data, model",
    "shard query by embed over data in layers 0..3",
    "shard q*, key by embed over none in layers 4",
]


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
