import random

import pytest

from asap.compiler.mapped.failures import TOLERANCE
from asap.compiler.mapped.virtual_run import differences
from asap.hardware import resolve_hardware
from asap.mapping.algorithm import ALGORITHMS
from mapping.table import legal_space

pytestmark = [pytest.mark.compiles, pytest.mark.process, pytest.mark.slow]

SUMMA = [
    f"algorithm summa\ngrid {grid}\nstationary {operand}\npanels {panels}"
    for grid, operand, panels in (
        ("(2, 4)", "A", 2), ("(4, 2)", "A", 4), ("(2, 4)", "B", 4), ("(8, 1)", "B", 2), ("(4, 2)", "C", 4),
        ("(1, 8)", "A", 4), ("(1, 8)", "C", 2),
    )
]  # fmt: skip
"""Where grids are not square, panels of two operands differ unless they are cut into common parts."""


@pytest.mark.parametrize(("machine", "each"), [("v5e:2x4", 1), ("v5e:4x4", 2)])
def test_every_algorithm_is_right_under_mappings_at_random(machine, each):
    hardware, draw = resolve_hardware(machine).slice, random.Random()
    programs = SUMMA if machine == "v5e:2x4" else []
    for name in ALGORITHMS:
        legal = legal_space(name, hardware)
        programs = [*programs, *(space.text(chosen) for space, chosen in draw.sample(legal, min(each, len(legal))))]
    found = differences(programs, hardware.topology)
    wrong = [(text, each) for text, each in zip(programs, found, strict=True) if each.pattern]
    assert wrong == []
    assert max(each.error for each in found) < TOLERANCE / 10
