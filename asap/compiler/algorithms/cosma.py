"""COSMA (Kwasniewski et al., 2019), and on a cube Johnson's algorithm: all three dimensions are cut."""

from typing import TYPE_CHECKING

from asap.compiler.algorithms.choices import Choices
from asap.compiler.algorithms.distributed import Distributed, Problem
from asap.compiler.algorithms.matmul import gathered_product, matmul

if TYPE_CHECKING:
    from jax import Array


def cosma(choices: Choices, problem: Problem) -> Distributed:
    """On a grid (m, n, k): A is gathered over n and B over m, panel by panel; C is added up and spread over k."""
    from jax import lax
    from jax.sharding import PartitionSpec

    over_m, over_n, _ = choices.grid

    def body(a: "Array", b: "Array") -> "Array":
        total = gathered_product(choices, a, b, ("n", "m"), (over_n, over_m))
        return lax.psum_scatter(total, "k", scatter_dimension=0, tiled=True).astype(a.dtype)

    return matmul(
        body, problem, PartitionSpec("m", ("k", "n")), PartitionSpec(("k", "m"), "n"), PartitionSpec(("m", "k"), "n")
    )
