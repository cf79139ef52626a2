"""What is asked of the history: the present run, as far as it is known."""

import re
from contextlib import suppress
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, PositiveFloat, PositiveInt

from asap.core.errors import AsapError
from asap.core.numbers import digits
from asap.diagnosis import Bottleneck
from asap.hardware import Slice, find_chip, resolve_hardware
from asap.plans import Plan
from asap.plans.prose import plans_written
from asap.profiles.profile import Bound

NEUTRAL = 0.5
"""The similarity of two runs about which nothing is known."""


class HistoryQuery(BaseModel):
    """The present run, as far as it is known."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    bottleneck: Bottleneck | None = None
    bound: Bound | None = Field(default=None, description="what most of the time is bound by, under the roofline")
    chip: str | None = Field(default=None, description="key or alias of asap/hardware")
    devices: PositiveInt | None = None
    parameters: PositiveFloat | None = Field(default=None, description="of the model, with all experts")
    plan: Plan | None = Field(default=None, description="the current one")
    text: str = ""

    @property
    def scale(self) -> int | None:
        """Devices, as said or as the plan has them."""
        return self.devices or (self.plan.devices if self.plan else None)


_BOTTLENECKS = (
    (Bottleneck.MEMORY_CAPACITY, r"out of memory|oom|memory capacity|(?:hbm|memory) is full|does not fit"),
    (Bottleneck.HBM, r"hbm|memory[- ]bandwidth|bandwidth[- ]bound|memory[- ]bound"),
    (
        Bottleneck.COMMUNICATION,
        r"communication|collectives?|all-?reduces?|all-?gathers?|all-?to-?all|reduce-?scatters?",
    ),
    (Bottleneck.HOST_TRANSFER, r"offload[- ]bound|host (?:transfers?|copies|memory)|copies with the host|copy-done"),
    (Bottleneck.HOST, r"input[- ]bound|host[- ]bound|input pipeline|infeed"),
    (Bottleneck.IDLE, r"idle|stragglers?"),
    (Bottleneck.COMPUTE, r"compute"),
)
_UNITS = {"m": 1e6, "b": 1e9, "t": 1e12}
_PARAMETERS = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?) ?([bmt])\b", re.IGNORECASE)
_DEVICES = re.compile(r"\b(\d+) ?(?:x\b|×|devices?\b|chips?\b|gpus?\b|tpus?\b)", re.IGNORECASE)


LONGEST = 4_000
"""Characters of a query whose words are read for facts."""


def parse_query(query: HistoryQuery) -> HistoryQuery:
    """The query with what its own words say filled in where nothing was stated."""
    said = {name: value for name, value in _facts(query.text[:LONGEST]).items() if getattr(query, name) is None}
    return query.model_copy(update=said)


def _facts(text: str) -> dict[str, Any]:
    facts: dict[str, Any] = {}
    named = next((kind for kind, words in _BOTTLENECKS if re.search(rf"\b(?:{words})\b", text, re.IGNORECASE)), None)
    if named:
        facts["bottleneck"] = named
    if (size := _PARAMETERS.search(text)) and digits(size[1].partition(".")[0]):
        facts["parameters"] = float(size[1]) * _UNITS[size[2].lower()]
    if (count := _DEVICES.search(text)) and (devices := digits(count[1])):
        facts["devices"] = devices
    with suppress(AsapError):
        facts |= {"plan": plans[0]} if (plans := plans_written(text)) else {}
    for word in re.findall(r"[\w-]+", text):
        if chip := find_chip(word):
            facts["chip"] = chip.chip.name
        elif hardware := _slice(word):
            facts |= {"chip": hardware.chip.name, "devices": hardware.devices}
    return facts


def _slice(word: str) -> Slice | None:
    with suppress(AsapError):
        return resolve_hardware(word).slice
    return None
