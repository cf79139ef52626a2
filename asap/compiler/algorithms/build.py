"""Algorithms by name, with the sizes of their benchmarks and those at which they are checked."""

from collections.abc import Callable
from dataclasses import dataclass

from asap.compiler.algorithms.choices import Choices
from asap.compiler.algorithms.circuit import circuit
from asap.compiler.algorithms.matmul import Distributed, Problem
from asap.compiler.algorithms.matmul_algorithms import cannon, cosma, pumma, solomonik, summa
from asap.compiler.algorithms.pennant import pennant
from asap.compiler.algorithms.stencil import stencil


@dataclass(frozen=True)
class Benchmark:
    """An algorithm, its problem on a machine, and a small one for a few virtual devices."""

    build: Callable[[Choices, Problem], Distributed]
    problem: Problem
    small: Problem


_PRODUCT: Problem = {"m": 8192, "n": 8192, "k": 8192}
_SMALL_PRODUCT: Problem = {"m": 128, "n": 128, "k": 128}

BENCHMARKS: dict[str, Benchmark] = {
    **{
        name: Benchmark(build, _PRODUCT, _SMALL_PRODUCT)
        for name, build in (
            ("cannon", cannon), ("summa", summa), ("pumma", pumma), ("johnson", cosma), ("solomonik", solomonik),
            ("cosma", cosma),
        )
    },
    "stencil": Benchmark(stencil, {"side": 8192, "steps": 8}, {"side": 128, "steps": 8}),
    "circuit": Benchmark(
        circuit,
        {"nodes": 16384, "shared": 4096, "wires": 32768, "border": 8192, "segments": 8, "steps": 1},
        {"nodes": 24, "shared": 8, "wires": 40, "border": 16, "segments": 3, "steps": 3},
    ),
    "pennant": Benchmark(pennant, {"side": 512, "steps": 1}, {"side": 32, "steps": 3}),
}  # fmt: skip


def build(choices: Choices, problem: Problem) -> Distributed:
    """The program of an algorithm under its choices."""
    return BENCHMARKS[choices.algorithm].build(choices, problem)
