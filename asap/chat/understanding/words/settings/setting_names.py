"""Settings by which a launcher knows the degree of an axis: "--tensor-model-parallel-size 2" is ``model=2``."""

import re
from functools import cache
from typing import get_args

from asap.plans import Plan
from asap.plans.axes import Axis
from asap.plans.launchers import Stack, settings_of

_STACKS: tuple[Stack, ...] = ("maxtext", "megatron", "torchtitan")
_TWO, _BATCH = 2, 8


@cache
def axis_settings() -> dict[str, tuple[Stack, Axis]]:
    """The settings whose value follows the degree of an axis, as each launcher writes them."""
    axes: tuple[Axis, ...] = get_args(Axis)
    found: dict[str, tuple[Stack, Axis]] = {}
    for stack in _STACKS:
        for axis in axes:
            plan = Plan(microbatches=1).with_ici(**{axis: _TWO})
            written = settings_of(plan, stack, global_batch=_BATCH, layers=_BATCH)
            for key, value in written.items():
                name = key.rpartition(".")[2]
                if str(value) == str(_TWO) and re.search(r"parallel|degree", name):
                    found.setdefault(name, (stack, axis))
    return found


def with_settings_as_axes(text: str) -> str:
    """The text with each such setting that has a value as the degree of its axis."""
    return _given().sub(lambda one: f"{axis_settings()[one[1].lower().replace('-', '_')][1]}={one[2]}", text)


@cache
def _given() -> re.Pattern[str]:
    names = "|".join(name.replace("_", "[-_]") for name in axis_settings())
    return re.compile(rf"(?<![\w-])(?:--)?(?:parallelism\.|model\.)?({names})\s*[=: ]\s*(\d{{1,5}})(?![\w.])", re.I)
