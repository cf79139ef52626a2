"""Counts what a run uses of a model, and stops it before the next call once a limit is reached."""

import asyncio
from dataclasses import dataclass

from google.genai import types

from asap.agents.settings import Settings
from asap.agents.usage import Usage, cost_of, price_of
from asap.core.errors import ServiceError, UsageError


class LimitError(ServiceError):
    """A limit that the user set was reached."""


@dataclass
class Call:
    """One request to a service.

    Args:
        turnstile: held until what the call used is known, if the next one must wait for that.
        tokens: in and out; ``None`` while, or if, the service does not tell.
    """

    turnstile: asyncio.Lock | None = None
    tokens: tuple[int, int] | None = None

    def count(self, used: types.GenerateContentResponseUsageMetadata | None) -> None:
        """Take down what the service says that it used; the last word counts."""
        if used is not None:
            self.tokens = _tokens(used)

    def count_nothing(self) -> None:
        """The service refused the request before it read it."""
        self.tokens = (0, 0)

    def close(self) -> None:
        """Let the next call pass; what comes later may still be counted."""
        if self.turnstile is not None:
            self.turnstile.release()
            self.turnstile = None


class Meter:
    """Calls, tokens and money of one run.

    Where tokens or money are limited, one call waits for the other, as what a call costs is known only afterwards: so
    no limit is overshot by more than one call.

    Args:
        model: name of the language model.
        settings: with its limits and prices.

    Raises:
        UsageError: the cost is limited, and the price is not known.
    """

    def __init__(self, model: str, settings: Settings):
        self._model, self._settings = model, settings
        self._price = price_of(model, settings)
        if settings.max_cost is not None and self._price is None:
            hint = f'state it in asap.toml: [agents.prices."{model}"] input = …, output = … (USD a million tokens)'
            raise UsageError("--max-cost cannot be held: no price is known", where=model, hint=hint)
        self._must_count = settings.max_cost is not None or settings.max_tokens is not None
        self._turnstile = asyncio.Lock()
        self._calls: list[Call] = []

    @property
    def usage(self) -> Usage:
        """What was used so far."""
        counted = [call.tokens for call in self._calls if call.tokens is not None]
        tokens = sum(read for read, _ in counted), sum(written for _, written in counted)
        return Usage(
            model=self._model,
            calls=len(self._calls),
            input_tokens=tokens[0],
            output_tokens=tokens[1],
            uncounted_calls=len(self._calls) - len(counted),
            cost=cost_of(*tokens, self._price[0]) if self._price else None,
            price_source=self._price[1] if self._price else None,
        )

    async def admit(self) -> Call:
        """Let one call pass; it is to be closed once it is counted.

        Raises:
            LimitError: a limit was reached.
        """
        call = Call()
        if self._must_count:
            await self._turnstile.acquire()
            call.turnstile = self._turnstile
        reached = self._reached(self.usage)
        if reached:
            call.close()
            raise LimitError(reached, where=self._model, hint="raise the limit, or take another --model")
        self._calls.append(call)
        return call

    def _reached(self, usage: Usage) -> str | None:
        limits = self._settings
        if usage.calls >= limits.max_calls:
            return f"the model came to no end in {limits.max_calls} calls (--max-calls)"
        if self._must_count and usage.uncounted_calls:
            return "the model does not tell how many tokens it used, so --max-tokens and --max-cost cannot be held"
        if limits.max_tokens is not None and usage.tokens >= limits.max_tokens:
            return f"{usage.tokens} tokens are used (--max-tokens {limits.max_tokens})"
        if limits.max_cost is not None and usage.cost is not None and usage.cost >= limits.max_cost:
            return f"{usage.cost:.4f} USD are spent (--max-cost {limits.max_cost:g})"
        return None


def _tokens(used: types.GenerateContentResponseUsageMetadata) -> tuple[int, int]:
    """Tokens in and out; thoughts are paid like answers."""
    read = (used.prompt_token_count or 0) + (used.tool_use_prompt_token_count or 0)
    total = used.total_token_count or 0
    written = (used.candidates_token_count or 0) + (used.thoughts_token_count or 0)
    return read, max(written, total - read)
