"""SUMMA (van de Geijn and Watts, 1997): one operand stays, the others are gathered or reduced, panel by panel."""

from typing import TYPE_CHECKING

from asap.compiler.algorithms.choices import Choices
from asap.compiler.algorithms.distributed import Distributed, Problem
from asap.compiler.algorithms.matmul import gathered_product, matmul
from asap.compiler.algorithms.steps import common_parts, in_turn, joined_panels, panel, product

if TYPE_CHECKING:
    from jax import Array


def summa(choices: Choices, problem: Problem) -> Distributed:
    """On a grid of r rows by c columns. The operand that is gathered lies transposed on it if C does not stay."""
    from jax.sharding import PartitionSpec

    straight, across = PartitionSpec("rows", "columns"), PartitionSpec("columns", "rows")
    if choices.stationary == "A":
        return matmul(lambda a, b: _stationary_a(choices, a, b), problem, straight, across, straight)
    if choices.stationary == "B":
        return matmul(lambda a, b: _stationary_b(choices, a, b), problem, across, straight, straight)
    rows, columns = choices.grid

    def stationary_c(a: "Array", b: "Array") -> "Array":
        return gathered_product(choices, a, b, ("columns", "rows"), (columns, rows)).astype(a.dtype)

    return matmul(stationary_c, problem, straight, straight, straight)


def _stationary_a(choices: Choices, a: "Array", b: "Array") -> "Array":
    """Gathers a panel of B's columns, and adds up along the row what each device gets for these columns of C."""
    from jax import lax

    rows, columns = choices.grid
    of_b, of_c = common_parts(rows, columns)
    found = []
    for index in range(choices.panels):
        beside = lax.all_gather(panel(b, 1, index, choices.panels, of_b), "rows", axis=1, tiled=True)
        (partial,) = in_turn(choices, product(a, *in_turn(choices, beside)))
        part = lax.psum_scatter(partial, "columns", scatter_dimension=1, tiled=True)
        part, b = in_turn(choices, part.astype(a.dtype), b)
        found.append(part)
    return joined_panels(found, 1, of_c)


def _stationary_b(choices: Choices, a: "Array", b: "Array") -> "Array":
    """Gathers a panel of A's rows, and adds up along the column what each device gets for these rows of C."""
    from jax import lax

    rows, columns = choices.grid
    of_a, of_c = common_parts(columns, rows)
    found = []
    for index in range(choices.panels):
        above = lax.all_gather(panel(a, 0, index, choices.panels, of_a), "columns", axis=0, tiled=True)
        (partial,) = in_turn(choices, product(*in_turn(choices, above), b))
        part = lax.psum_scatter(partial, "rows", scatter_dimension=0, tiled=True)
        part, a = in_turn(choices, part.astype(a.dtype), a)
        found.append(part)
    return joined_panels(found, 0, of_c)
