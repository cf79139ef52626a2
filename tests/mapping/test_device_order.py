import numpy as np
import pytest

from asap.mapping.device_order import places
from asap.mapping.language.parse import parse
from asap.mapping.language.program import Order


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
