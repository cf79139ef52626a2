"""The kind of each place of a grid: what most of its gain comes from."""

import numpy as np
from numpy.typing import NDArray

from asap.plans import AXES
from asap.prediction.evaluate_grid import GridEvaluation
from asap.proposals.selection.strategy import ALONE

MESH = 0
"""The axis of a grid along which the mesh changes; the others are levers."""

Places = NDArray[np.int64]
"""Indices into a grid, of shape (places, axes)."""


def kinds(found: GridEvaluation, places: Places, fits_now: bool) -> list[str]:
    """A lever, or the direction in which the mesh moves, and whether it is all that changes.

    Where the run does not fit as it is, what makes it fit: every lever that is changed.
    """
    axes = range(places.shape[1])
    if not fits_now:
        return ["+".join(_lever(found, axis) for axis in axes if place[axis]) for place in places]
    brought = np.stack([_brought(found, places, axis) for axis in axes], axis=1)
    main = np.argmax(np.where(places == 0, -np.inf, brought), axis=1)
    names = np.array([_lever(found, axis) for axis in axes])[main]
    names = np.where(main == MESH, _directions(found.grid.meshes)[places[:, MESH]], names)
    return np.where(np.count_nonzero(places, axis=1) == 1, np.char.add(names, ALONE), names).tolist()


def _brought(found: GridEvaluation, places: Places, axis: int) -> NDArray[np.float64]:
    """Gain that a place loses if one change is taken back; none where it only makes room for another one."""
    back = places.copy()
    back[:, axis] = 0
    index, without = tuple(places.T), tuple(back.T)
    runs = found.fits[without] & found.valid[without]
    return np.where(runs, found.gain[index] - found.gain[without], 0.0)


def _lever(found: GridEvaluation, axis: int) -> str:
    return "mesh" if axis == MESH else found.grid.levers[axis - 1][0].name


def _directions(meshes: NDArray[np.int64]) -> NDArray[np.str_]:
    """The axis that each mesh moves most, raised or lowered; data and replica only where nothing else moves."""
    steps = np.log2(meshes / meshes[0]) * np.where(np.isin(AXES, ("replica", "data")), 0.01, 1.0)
    leading = np.argmax(np.where(steps < 0, -1.5 * steps, steps), axis=1)
    moved = zip(leading, steps[np.arange(len(meshes)), leading], strict=True)
    return np.array([f"{'more' if step > 0 else 'less'} {AXES[axis]}" for axis, step in moved])
