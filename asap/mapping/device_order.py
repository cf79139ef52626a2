"""The order of devices: the place in the mesh of the device at each coordinate of the torus."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from asap.mapping.language.expression import evaluate
from asap.mapping.language.program import Block, IndexMap, Walk

if TYPE_CHECKING:
    import numpy as np


def places(by: Walk | Block | IndexMap, topology: tuple[int, ...]) -> "np.ndarray":
    """Places 0, 1, … as an array over the torus; of a map whatever it gives, which may be no permutation.

    ``row`` counts along the last axis first, ``col`` along the first. ``fold`` counts like
    ``row`` along axes that are folded: a ring along one needs no wrap-around link, as its neighbours are at most two
    hops apart. ``block`` goes through one block after the other.

    Raises:
        DivisionError: a map divides by zero.
        OverflowedError: a map leaves 64 bits.
    """
    import numpy as np

    coordinates = list(np.indices(topology))
    if isinstance(by, IndexMap):
        named = {name.text: axis for name, axis in zip(by.parameters, coordinates, strict=True)}
        return evaluate(by.expression, named)
    if isinstance(by, Block):
        sides = [side.value for side in by.sides]
        blocks = tuple(length // side for length, side in zip(topology, sides, strict=True))
        outer = [axis // side for axis, side in zip(coordinates, sides, strict=True)]
        inner = [axis % side for axis, side in zip(coordinates, sides, strict=True)]
        return _ravel((*outer, *inner), (*blocks, *sides))
    if by.kind == "row":
        return _ravel(coordinates, topology)
    if by.kind == "col":
        return _ravel(coordinates[::-1], topology[::-1])
    return _fold(coordinates, topology)


def block_fits(block: Block, topology: tuple[int, ...]) -> bool:
    """Whether blocks tile the torus."""
    return len(block.sides) == len(topology) and all(
        length % side.value == 0 for length, side in zip(topology, block.sides, strict=True)
    )


def _fold(coordinates: "Sequence[np.ndarray]", topology: tuple[int, ...]) -> "np.ndarray":
    """Along each axis first the even coordinates upwards, then the odd ones downwards: 0, 2, 4, …, 5, 3, 1."""
    import numpy as np

    folded = [
        np.where(axis % 2, length - 1 - axis // 2, axis // 2)
        for axis, length in zip(coordinates, topology, strict=True)
    ]
    return _ravel(folded, topology)


def _ravel(coordinates: "Sequence[np.ndarray]", lengths: tuple[int, ...]) -> "np.ndarray":
    """Places counted along the last axis first."""
    import numpy as np

    return np.asarray(np.ravel_multi_index(tuple(coordinates), lengths))
