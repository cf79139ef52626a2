"""Meters the model calls, tokens and cost of a run, and stops it before the next call once a limit is reached."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from google.adk.models.llm_response import LlmResponse

from asap.agents.llm.usage import MILLION, Usage, in_words, price_of
from asap.agents.settings import BUILTIN, Settings
from asap.core.errors import ServiceError, UsageError
from asap.core.numbers import as_setting
from asap.core.units import significant

CHARACTERS_OF_TOKEN = 4
"""Of English and of JSON, as OpenAI's and Google's documentation of tokens has it."""
MOST_CHARACTERS_OF_TOKEN = 40
"""A report of fewer tokens than that cannot be right: a tenth of the estimate."""
MOST_TOKENS = 10_000_000
"""A report of more in one call cannot be right: ten times the longest context that is sold."""
MOST_TOOL_CALLS = 10
"""Tool calls of a run for each model call that it may make."""


class LimitError(ServiceError):
    """A limit set by the user was reached."""


@dataclass
class ModelCall:
    """One request to a service.

    Args:
        lock: held until the usage of the call is known, if the next call must wait for it.
        asked: characters of the request.
        answered: characters of the answer so far.
        reported: input and output tokens as the service reports them, if it does.
        free: whether it costs nothing: it runs here, or the service rejected the request.
    """

    lock: asyncio.Lock | None = None
    asked: int = 0
    answered: int = 0
    reported: tuple[int, int] | None = None
    free: bool = False

    @property
    def tokens(self) -> tuple[int, int]:
        """Input and output, estimated from the text where no report can be right."""
        if self.free:
            return 0, 0
        estimates = -(-self.asked // CHARACTERS_OF_TOKEN), -(-self.answered // CHARACTERS_OF_TOKEN)
        if self.reported is None:
            return estimates
        read, written = (
            reported if characters // MOST_CHARACTERS_OF_TOKEN <= reported <= MOST_TOKENS else estimate
            for reported, characters, estimate in zip(
                self.reported, (self.asked, self.answered), estimates, strict=True
            )
        )
        return read, written

    @property
    def is_estimated(self) -> bool:
        """Whether the service reported nothing that can be right."""
        return not self.free and self.tokens != self.reported

    def count(self, response: LlmResponse) -> None:
        """Record an answer, or a part of one, and the usage that it reports; the last report counts."""
        parts = (response.content.parts if response.content else None) or ()
        calls = (part.function_call.model_dump_json(exclude_none=True) if part.function_call else "" for part in parts)
        characters = sum(len(part.text or "") for part in parts) + sum(map(len, calls))
        self.answered = self.answered + characters if response.partial else max(self.answered, characters)
        if (used := response.usage_metadata) is not None:
            read = (used.prompt_token_count or 0) + (used.tool_use_prompt_token_count or 0)
            written = (used.candidates_token_count or 0) + (used.thoughts_token_count or 0)  # thoughts are billed, too
            self.reported = read, max(written, (used.total_token_count or 0) - read) if read >= 0 else written

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
        self._tool_calls = 0

    @property
    def usage(self) -> Usage:
        """Usage so far."""
        counted = [call.tokens for call in self._calls]
        read, written = sum(read for read, _ in counted), sum(written for _, written in counted)
        price = self._price[0] if self._price else None
        return Usage(
            model=self._model,
            calls=len(self._calls),
            input_tokens=read,
            output_tokens=written,
            uncounted_calls=sum(call.is_estimated for call in self._calls),
            cost=(read * price.input + written * price.output) / MILLION if price else None,
            price_source=self._price[1] if self._price else None,
        )

    def telling(self, progress: Callable[[str], None]) -> Callable[[str], None]:
        """A progress that tells with each stage what was spent so far."""
        return lambda stage: progress(f"{stage} ({in_words(self.usage)})")

    def count_tools(self, calls: int) -> None:
        """Count the tool calls of an answer.

        Raises:
            LimitError: there are too many in this run.
        """
        self._tool_calls += calls
        most = MOST_TOOL_CALLS * self._settings.max_calls
        if self._tool_calls > most:
            raise LimitError(
                f"the model called more than {most} tools in one run", where=self._model, hint="use another --llm"
            )

    async def admit(self, asked: int = 0) -> ModelCall:
        """Start one call of so many characters; the caller closes it once its usage is counted.

        Raises:
            LimitError: a limit was reached.
        """
        call = ModelCall(asked=asked, free=self._model == BUILTIN)
        if self._one_at_a_time:
            await self._lock.acquire()
            call.lock = self._lock
        reached = self._reached(self.usage)
        if reached:
            call.close()
            raise LimitError(reached, where=self._model, hint="raise the limit, or use another --llm")
        self._calls.append(call)
        return call

    def _reached(self, usage: Usage) -> str | None:
        limits = self._settings
        if usage.calls >= limits.max_calls:
            return f"the model did not finish within {limits.max_calls} calls (--max-calls)"
        if limits.max_tokens is not None and usage.tokens >= limits.max_tokens:
            return f"{usage.tokens} tokens used (--max-tokens {limits.max_tokens})"
        if limits.max_cost is not None and usage.cost is not None and usage.cost >= limits.max_cost:
            return f"{significant(usage.cost)} USD spent (--max-cost {as_setting(limits.max_cost)})"
        return None
