"""Usage of language models: calls, tokens, cost. Written to the worklog, read by ``asap llm cost``."""

import json
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from asap.agents.settings import BUILTIN, Price, Settings
from asap.core.units import significant
from asap.sharding_memory import Kind, Record

EVENT = "usage"
MILLION = 1_000_000
_COUNTED = ("calls", "input_tokens", "output_tokens", "uncounted_calls")


class Usage(BaseModel):
    """Usage of one run."""

    model_config = ConfigDict(frozen=True)

    model: str
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    uncounted_calls: int = Field(
        default=0, description="calls whose tokens are estimated: the service reported none that can be right"
    )
    cost: float | None = Field(default=None, description="US dollars; None if no price is set")
    price_source: str | None = None

    @property
    def tokens(self) -> int:
        """Input and output."""
        return self.input_tokens + self.output_tokens


def in_words(usage: Usage) -> str:
    """``3 calls, 15,000 tokens in, 400 out, 0.0123 USD``."""
    calls = f"{usage.calls} call{'' if usage.calls == 1 else 's'}"
    money = "cost unknown" if usage.cost is None else f"{significant(usage.cost)} USD"
    estimated = " (estimated)" if usage.uncounted_calls else ""
    return f"{calls}, {usage.input_tokens:,} tokens in, {usage.output_tokens:,} out{estimated}, {money}"


def summed(usages: Iterable[Usage]) -> list[Usage]:
    """The usage of each model; its cost is unknown where that of one run is."""
    total: dict[str, Usage] = {}
    for one in usages:
        before = total.get(one.model, Usage(model=one.model, cost=0.0))
        known = before.cost is not None and one.cost is not None
        counted = {name: getattr(before, name) + getattr(one, name) for name in _COUNTED}
        cost = (before.cost or 0.0) + (one.cost or 0.0) if known else None
        total[one.model] = one.model_copy(update=counted | {"cost": cost})
    return list(total.values())


def price_of(model: str, settings: Settings) -> tuple[Price, str] | None:
    """The price of a model and its source: the settings, else LiteLLM's list if that is installed."""
    if model == BUILTIN:
        return Price(input=0, output=0), "runs here"
    if model in settings.prices:
        return settings.prices[model], "settings"
    listed = _price_list().get(model) or _price_list().get(model.partition("/")[2]) or {}
    if "input_cost_per_token" not in listed or "output_cost_per_token" not in listed:
        return None
    read, written = (listed[f"{side}_cost_per_token"] * MILLION for side in ("input", "output"))
    return Price(input=read, output=written), "LiteLLM's price list"


@cache
def _price_list() -> dict[str, Any]:
    """LiteLLM's prices if it is installed, read without importing it, which takes seconds."""
    package = find_spec("litellm")
    file = Path((package.origin if package else None) or "/").parent / "model_prices_and_context_window_backup.json"
    return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}


def usage_entry(usage: Usage) -> dict[str, Any]:
    """Usage as a note of the worklog."""
    return {"event": EVENT, **usage.model_dump(exclude_none=True)}


def usages(records: Iterable[Record]) -> list[Usage]:
    """Usage of the runs of a session, in order."""
    found = []
    for record in records:
        if record.kind is Kind.NOTE and record.fields.get("event") == EVENT:
            with suppress(ValidationError):
                found.append(Usage.model_validate(record.payload))
    return found
