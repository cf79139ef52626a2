"""COSMA (Kwasniewski et al., 2019), and on a cube Johnson's algorithm: all three dimensions are cut."""

from typing import TYPE_CHECKING

from asap.compiler.algorithms.choices import Choices
from asap.compiler.algorithms.distributed import Distributed, Problem
from asap.compiler.algorithms.matmul import matmul
from asap.compiler.algorithms.steps import common_parts, in_turn, panel, product

if TYPE_CHECKING:
    from jax import Array


def cosma(choices: Choices, problem: Problem) -> Distributed:
    """On a grid (m, n, k): A is gathered over n and B over m, panel by panel; C is added up and spread over k."""
    from jax import lax
    from jax.sharding import PartitionSpec

    over_m, over_n, _ = choices.grid
    of_a, of_b = common_parts(over_n, over_m)

    def body(a: "Array", b: "Array") -> "Array":
        total = None
        for index in range(choices.panels):
            left = lax.all_gather(panel(a, 1, index, choices.panels, of_a), "n", axis=1, tiled=True)
            above = lax.all_gather(panel(b, 0, index, choices.panels, of_b), "m", axis=0, tiled=True)
            left, above = in_turn(choices, left, above)
            total, a, b = in_turn(choices, product(left, above, total), a, b)
        assert total is not None
        return lax.psum_scatter(total, "k", scatter_dimension=0, tiled=True).astype(a.dtype)

    return matmul(
        body, problem, PartitionSpec("m", ("k", "n")), PartitionSpec(("k", "m"), "n"), PartitionSpec(("m", "k"), "n")
    )
