"""Proposes mapping programs of a distributed algorithm from feedback, by rules that know no algorithm by name.

How much of the feedback is used is an option, to measure what it is worth: nothing (``none``), the kind of what is
wrong (``explain``), or its repair as well (``suggest``).
"""

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from math import prod
from typing import Literal

from asap.core.feedback import Feedback, repaired
from asap.mapping.language.format import format_decision
from asap.mapping.language.parse import parse
from asap.mapping.space import AlgorithmSpace
from asap.optimize.outcome import Configuration, Suggestion, Try

Use = Literal["none", "explain", "suggest"]

DECIDES: Mapping[str, tuple[str, ...]] = {
    "RING_LOST": ("order",),
    "SYNCHRONOUS_COLLECTIVE": ("exchange", "grid", "overlap", "stationary"),
    "EXPOSED_COLLECTIVE": ("grid", "halo", "panels", "stationary", "exchange", "overlap"),
    "RESHARDING": ("exchange", "stationary", "grid"),
    "LAYOUT_COPY": ("layout", "grid", "panels"),
    "COMPUTE_BOUND": ("layout", "halo", "grid", "panels"),
    "MEMORY_TO_SPARE": ("panels", "stationary"),
}
"""Decisions that change what a code says, the likeliest first."""

_DRAWS = 1000


class MappingRules:
    """Repairs what is wrong; then follows the feedback on the best programs; then changes one decision at a time.

    Args:
        space: the decisions and their options.
        use: how much of the feedback is used.
        start: the first program; one at random by default.
        seed: of every draw.
        allowed: what is proposed at all; the check of the language, to propose nothing that it refuses.
        mended: what a program becomes before that; the repairs of the check, so that a decision that needs another
            takes it along.
    """

    def __init__(
        self,
        space: AlgorithmSpace,
        *,
        use: Use = "suggest",
        start: Configuration | None = None,
        seed: int = 0,
        allowed: Callable[[Configuration], bool] = lambda text: True,
        mended: Callable[[Configuration], Configuration] = lambda text: text,
    ) -> None:
        self._space, self._use, self._start, self._allowed, self._mended = space, use, start, allowed, mended
        self._draw = random.Random(seed)
        self._ranks = {key: self._draw.sample(options, len(options)) for key, options in space.options.items()}

    def propose(self, tries: Sequence[Try]) -> Suggestion | None:
        """The next program; ``None`` once nothing new is found."""
        return self.needed(tries) or self._first_new(self._candidates(tries), tries)

    def needed(self, tries: Sequence[Try]) -> Suggestion | None:
        """The program to begin with, or the repair of the last one if that was wrong; ``None``: there is neither."""
        if not tries and self._start is not None:
            return Suggestion(configuration=self._start, why="the program to begin with")
        last = tries[-1].outcome if tries else None
        if last is None or last.status == "done" or self._use != "suggest" or not last.feedback:
            return None
        repair = repaired(tries[-1].configuration, last.feedback), f"repairs {last.feedback[0].code}"
        return self._first_new([repair], tries)

    def _first_new(self, candidates: Iterable[tuple[Configuration, str]], tries: Sequence[Try]) -> Suggestion | None:
        seen = {meaning(each.configuration) for each in tries}
        for candidate, why in candidates:
            text = self._mended(candidate)
            if meaning(text) not in seen and self._allowed(text):
                return Suggestion(configuration=text, why=why)
        return None

    def _candidates(self, tries: Sequence[Try]) -> Iterator[tuple[Configuration, str]]:
        done = sorted((each for each in tries if each.outcome and each.outcome.step_time_s is not None), key=_seconds)
        last = tries[-1] if tries else None
        if last is not None and last.outcome is not None:
            yield from self._answers_to(last, done[0] if done else None)
        if self._use == "suggest":
            for good in done[:3]:
                yield from _repairs(good, done[0])
            for best in done[:5]:
                yield from self._neighbours(best, named_only=True)
        for best in done[:2]:
            yield from self._neighbours(best)
        for _ in range(_DRAWS):
            chosen = {key: self._draw.choice(options) for key, options in self._space.options.items()}
            yield self._space.text(chosen), "at random"

    def _answers_to(self, last: Try, best: Try | None) -> Iterator[tuple[Configuration, str]]:
        """What the last try asks for: other words for what is wrong, or a repair known to make it the fastest."""
        assert last.outcome is not None
        found = last.outcome.feedback
        if last.outcome.status != "done" and self._use == "explain" and best is None:
            yield from self._rewritten(last.configuration, found)
        if self._use == "suggest" and best is not None:
            for each in found:
                if each.repaired_step_time_s is not None and each.repaired_step_time_s < _seconds(best):
                    yield repaired(last.configuration, (each,)), each.suggestion

    def _rewritten(self, text: Configuration, found: Sequence[Feedback]) -> Iterator[tuple[Configuration, str]]:
        """Another option for each line that is wrong."""
        chosen = _chosen(self._space, text)
        for each in found:
            line = text.split("\n")[(each.line or 1) - 1]
            for key in (key for key in self._space.options if line.startswith(f"{key} ")):
                for option in self._ranks[key]:
                    yield self._space.text({**chosen, key: option}), f"another {key} for {each.code}"

    def _neighbours(self, best: Try, named_only: bool = False) -> Iterator[tuple[Configuration, str]]:
        """One decision changed: first those that the feedback names, or all in an order of their own."""
        chosen = _chosen(self._space, best.configuration)
        keys = list(self._ranks)
        self._draw.shuffle(keys)
        if self._use != "none" and best.outcome is not None:
            named = [word for each in best.outcome.feedback for word in DECIDES.get(each.code, ())]
            keys.sort(key=lambda key: named.index(key.split()[0]) if key.split()[0] in named else len(named))
            keys = [key for key in keys if key.split()[0] in named] if named_only else keys
        options = [(key, option) for key in keys for option in self._ranks[key]]
        if self._use == "none":
            self._draw.shuffle(options)
        for key, option in options:
            if self._use == "suggest" and key == "grid" and _places(option) != _places(chosen[key]):
                continue
            yield self._space.text({**chosen, key: option}), f"another {key}"


def _places(grid: str) -> int:
    """Places of a grid: one that was accepted says how many devices there are."""
    return prod(int(side) for side in grid.strip("()").split(","))


def _repairs(good: Try, best: Try) -> Iterator[tuple[Configuration, str]]:
    """The repairs of a program, but for those that are known to be no faster than the best."""
    for each in good.outcome.feedback if good.outcome else ():
        known = each.repaired_step_time_s
        if each.repair is not None and (known is None or known < _seconds(best)):
            yield repaired(good.configuration, (each,)), f"{each.code}: {each.suggestion}"


def _chosen(space: AlgorithmSpace, text: Configuration) -> dict[str, str]:
    """What a program says for each decision; the first option where it says nothing."""
    said = meaning(text)
    return {
        key: next((line.removeprefix(f"{key} ") for line in said if line.startswith(f"{key} ")), options[0])
        for key, options in space.options.items()
    }


@lru_cache(maxsize=10_000)
def meaning(text: Configuration) -> frozenset[str]:
    """The decisions of a program, whatever their order and spacing; the text itself where it has none."""
    return frozenset(format_decision(decision) for decision in parse(text)[0].decisions) or frozenset((text,))


def _seconds(each: Try) -> float:
    return each.outcome.step_time_s if each.outcome and each.outcome.step_time_s is not None else float("inf")
