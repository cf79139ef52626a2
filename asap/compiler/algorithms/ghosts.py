"""Copies of nodes that belong to other pieces: how they are fetched, and how what they gained gets to their owners."""

from typing import TYPE_CHECKING

from asap.compiler.algorithms.choices import Choices
from asap.compiler.algorithms.steps import shifted

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
