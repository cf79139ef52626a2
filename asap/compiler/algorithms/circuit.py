"""A circuit in pieces: wires carry charge between nodes, some of which belong to other pieces.

The graph is drawn at random. A wire starts at a node of its piece; it ends at one of the same piece or, a ``border``
wire, at a shared node of a piece one or two places away.
"""

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from asap.compiler.algorithms.choices import Choices
from asap.compiler.algorithms.matmul import Distributed, Problem, in_turn, shifted

if TYPE_CHECKING:
    from jax import Array


def fetch_ghosts(choices: Choices, mine: "Array", reach: tuple[int, ...]) -> "Array":
    """The shared nodes of the pieces at these places, one piece after the other.

    ``gather`` brings those of every piece, ``all_to_all`` one message to each piece, ``permute`` one shift per place.
    """
    import jax.numpy as jnp
    from jax import lax

    (pieces,) = choices.grid
    if choices.exchange == "permute":
        return jnp.concatenate([shifted(mine, "pieces", pieces, place) for place in reach])
    here = lax.axis_index("pieces")
    if choices.exchange == "gather":
        everything = lax.all_gather(mine, "pieces")
    else:
        to_each = jnp.broadcast_to(mine, (pieces, *mine.shape))
        everything = lax.all_to_all(to_each, "pieces", 0, 0)
    return jnp.concatenate([everything[(here + place) % pieces] for place in reach])


def add_to_owners(choices: Choices, ghosts: "Array", reach: tuple[int, ...]) -> "Array":
    """What the copies on all other pieces gained, added up for the shared nodes of this one."""
    import jax.numpy as jnp
    from jax import lax

    (pieces,) = choices.grid
    parts = jnp.split(ghosts, len(reach))
    if choices.exchange == "permute":
        received = [shifted(part, "pieces", pieces, -place) for part, place in zip(parts, reach, strict=True)]
        return sum(received[1:], received[0])
    here = lax.axis_index("pieces")
    for_each = jnp.zeros((pieces, *parts[0].shape), ghosts.dtype)
    for part, place in zip(parts, reach, strict=True):
        for_each = for_each.at[(here + place) % pieces].add(part)
    if choices.exchange == "gather":
        return lax.psum_scatter(for_each, "pieces")
    return lax.all_to_all(for_each, "pieces", 0, 0).sum(0)


REACH = (-2, -1, 1, 2)
"""Places of the pieces whose shared nodes a piece's wires end at."""

_FACTOR = np.float32(0.01)


def circuit(choices: Choices, problem: Problem) -> Distributed:
    """``steps`` steps of a circuit; sizes are those of one piece.

    ``nodes`` nodes of which the last ``shared`` may be ends of other pieces' wires, ``wires`` inside, ``border``
    beyond, each with ``segments`` resistors. The layout of ``segments`` is a wire after the other, or by column.
    """
    from jax.sharding import PartitionSpec

    (pieces,) = choices.grid
    by_column = "segments" in choices.by_column
    segments = (problem["segments"], problem["wires"] + problem["border"])
    shape = (pieces, *(segments if by_column else segments[::-1]))
    spec = PartitionSpec("pieces")
    counts = (problem["nodes"], problem["wires"], problem["wires"], problem["border"], problem["border"])
    inputs = partial(_inputs, problem, pieces, by_column)
    return Distributed(
        partial(_body, choices, problem),
        ((pieces, problem["nodes"]), shape, *((pieces, count) for count in counts[1:])),
        (spec,) * 6,
        spec,
        inputs,
        partial(_plain, problem, pieces),
        types=("float32", "float32", "int32", "int32", "int32", "int32"),
    )


def _body(
    choices: Choices, problem: Problem, voltage: "Array", segments: "Array",
    start: "Array", end: "Array", border_start: "Array", border_end: "Array",
) -> "Array":  # fmt: skip
    import jax.numpy as jnp

    voltage, segments = voltage[0], segments[0]
    start, end, border_start, border_end = start[0], end[0], border_start[0], border_end[0]
    nodes, shared, wires = problem["nodes"], problem["shared"], problem["wires"]
    dimension = 0 if "segments" in choices.by_column else 1
    for _ in range(problem["steps"]):
        ghosts = fetch_ghosts(choices, voltage[nodes - shared :], REACH)
        ghosts, voltage = in_turn(choices, ghosts, voltage)
        resistance = jnp.sum(segments, dimension)
        inner = (voltage[start] - voltage[end]) / resistance[:wires]
        outer = (voltage[border_start] - ghosts[border_end]) / resistance[wires:]
        charge = jnp.zeros_like(voltage).at[border_start].add(-outer)
        sent = add_to_owners(choices, jnp.zeros_like(ghosts).at[border_end].add(outer), REACH)
        sent, charge = in_turn(choices, sent, charge)
        charge = charge.at[start].add(-inner).at[end].add(inner)
        charge = charge.at[nodes - shared :].add(sent)
        voltage = voltage + _FACTOR * charge
        segments = segments * jnp.float32(1.001)
    return voltage[None]


def _inputs(problem: Problem, pieces: int, by_column: bool) -> tuple[np.ndarray, ...]:
    draw = np.random.default_rng(0)
    nodes, shared, wires, border = (problem[name] for name in ("nodes", "shared", "wires", "border"))
    voltage = draw.standard_normal((pieces, nodes), np.float32)
    segments = draw.random((pieces, wires + border, problem["segments"]), np.float32) + np.float32(0.5)
    ends = [
        draw.integers(0, high, (pieces, count), np.int32)
        for high, count in ((nodes, wires), (nodes, wires), (nodes, border), (len(REACH) * shared, border))
    ]
    return voltage, segments.swapaxes(1, 2) if by_column else segments, *ends


def _plain(problem: Problem, pieces: int) -> np.ndarray:
    """The circuit as one list of nodes and one of wires."""
    voltage, segments, start, end, border_start, border_end = _inputs(problem, pieces, False)
    nodes, shared = problem["nodes"], problem["shared"]
    first = np.arange(pieces)[:, None] * nodes
    slot, index = np.divmod(border_end, shared)
    owner = (np.arange(pieces)[:, None] + np.array(REACH)[slot]) % pieces
    starts = np.concatenate((first + start, first + border_start), 1)
    ends = np.concatenate((first + end, owner * nodes + nodes - shared + index), 1)
    found = voltage.ravel().astype(np.float64)
    for step in range(problem["steps"]):
        resistance = segments.sum(2, dtype=np.float64) * 1.001**step
        current = (found[starts] - found[ends]) / resistance
        charge = np.zeros_like(found)
        np.add.at(charge, starts, -current)
        np.add.at(charge, ends, current)
        found = found + float(_FACTOR) * charge
    return found.reshape(pieces, nodes)
