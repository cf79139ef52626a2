"""Meters the model calls, tokens and cost of a run, and stops it before the next call once a limit is reached."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from google.genai import types

from asap.agents.llm.usage import Usage, cost_of, in_words, price_of
from asap.agents.settings import BUILTIN, Settings
from asap.core.errors import ServiceError, UsageError


class LimitError(ServiceError):
    """A limit set by the user was reached."""


@dataclass
class ModelCall:
    """One request to a service.

    Args:
        lock: held until the usage of the call is known, if the next call must wait for it.
        tokens: input and output; ``None`` until, or unless, the service reports them.
    """

    lock: asyncio.Lock | None = None
    tokens: tuple[int, int] | None = None

    def count(self, used: types.GenerateContentResponseUsageMetadata | None) -> None:
        """Record the usage that the service reports; the last report counts."""
        if used is not None:
            self.tokens = _tokens(used)

    def count_refused(self) -> None:
        """Record that the service rejected the request."""
        self.tokens = (0, 0)

    def close(self) -> None:
        """Let the next call start; later reports are still counted."""
        if self.lock is not None:
            self.lock.release()
            self.lock = None


class UsageMeter:
    """Calls, tokens and cost of one run.

    Where tokens or cost are limited, calls run one at a time, as the usage of a call is known only afterwards: a limit
    is exceeded by one call at most.

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
            hint = f'set it in asap.toml: [agents.prices."{model}"] input = …, output = … (USD per million tokens)'
            raise UsageError("--max-cost cannot be enforced: no price is set", where=model, hint=hint)
        self._one_at_a_time = settings.max_cost is not None or settings.max_tokens is not None
        self._lock = asyncio.Lock()
        self._calls: list[ModelCall] = []

    @property
    def usage(self) -> Usage:
        """Usage so far."""
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

    def telling(self, progress: Callable[[str], None]) -> Callable[[str], None]:
        """A progress that tells with each stage what was spent so far; nothing is spent on the built-in model."""
        if self._model == BUILTIN:
            return progress
        return lambda stage: progress(f"{stage} ({in_words(self.usage)})")

    async def admit(self) -> ModelCall:
        """Start one call; the caller closes it once its usage is counted.

        Raises:
            LimitError: a limit was reached.
        """
        call = ModelCall()
        if self._one_at_a_time:
            await self._lock.acquire()
            call.lock = self._lock
        reached = self._reached(self.usage)
        if reached:
            call.close()
            raise LimitError(reached, where=self._model, hint="raise the limit, or use another --model")
        self._calls.append(call)
        return call

    def _reached(self, usage: Usage) -> str | None:
        limits = self._settings
        if usage.calls >= limits.max_calls:
            return f"the model did not finish within {limits.max_calls} calls (--max-calls)"
        if self._one_at_a_time and usage.uncounted_calls:
            return "the model does not report its token usage, so --max-tokens and --max-cost cannot be enforced"
        if limits.max_tokens is not None and usage.tokens >= limits.max_tokens:
            return f"{usage.tokens} tokens used (--max-tokens {limits.max_tokens})"
        if limits.max_cost is not None and usage.cost is not None and usage.cost >= limits.max_cost:
            return f"{usage.cost:.4f} USD spent (--max-cost {limits.max_cost:g})"
        return None


def _tokens(used: types.GenerateContentResponseUsageMetadata) -> tuple[int, int]:
    """Input and output tokens; thoughts are billed as output."""
    read = (used.prompt_token_count or 0) + (used.tool_use_prompt_token_count or 0)
    total = used.total_token_count or 0
    written = (used.candidates_token_count or 0) + (used.thoughts_token_count or 0)
    return read, max(written, total - read)
