"""A question as it is understood: its topic, the plans and the change it is about, its numbers."""

import re
from dataclasses import dataclass

from asap.chat.understanding.quantities.amounts import Amount
from asap.chat.understanding.quantities.changes import Change
from asap.chat.understanding.quantities.prices import prices_in
from asap.chat.understanding.quantities.sweeps import Sweep
from asap.chat.understanding.references.references import References
from asap.chat.understanding.scene import Context
from asap.chat.understanding.topics.topics import Topic
from asap.chat.understanding.words.durations import asks_how_long
from asap.plans import Plan

_DEAREST = 100.0
"""No chip hour costs more US dollars; what is above is a budget or a bill."""
_HYPOTHETICAL = re.compile(
    r"\b(?:what if|what happens|if|suppose|imagine|assum\w+|would|could|might|how about|what "
    r"about|switch\w*|mov\w+|instead|swap\w*"
    r"|go(?:ing)? (?:to|from|up|down)|scal\w+|with|on|train|use|double\w*|grow\w*|drop\w*|take"
    r"|quanti\w+|rematerial\w+|split|put|offload\w*)\b",
    re.I,
)
_CHIP_HOURS = re.compile(r"\b(?:chip|device|core|gpu|tpu)[ -]hours?\b", re.I)
_SCENARIO = re.compile(r"\b(?:that|then|it|still|in that case|there)\b", re.I)

_FIGURES = {Topic.MEMORY, Topic.THROUGHPUT}
_MONEY = re.compile(r"[$€]|\b(?:dollars?|usd|bucks|money|price|bill|cost(?:s|ing)? (?:us|me|for|of|per))\b", re.I)
_BEFORE_AND_AFTER = re.compile(
    r"\b(?:before|now|old|current\w*|today)\s*(?:/|,|->|→|\b(?:and|vs\.?|versus|or|to)\b)\s*"
    r"(?:the )?(?:after\w*|then|new)\b",
    re.I,
)
_OF_NOW = re.compile(r"\b(?:now|currently|today|at present|as (?:it )?is|baseline|before|original\w*)\b", re.I)


@dataclass(frozen=True)
class Question:
    """One question, resolved; ``perhaps`` it is of a topic that is not near enough to be its topic."""

    text: str
    topic: Topic
    refs: References
    change: Change
    plans: tuple[Plan, ...]
    operations: tuple[str, ...]
    amounts: tuple[Amount, ...]
    unused: tuple[Amount, ...]
    context: Context
    ellipsis: bool
    sweep: Sweep | None = None
    perhaps: Topic | None = None

    @property
    def hypothetical(self) -> bool:
        """Whether it asks what would be."""
        return _HYPOTHETICAL.search(self.text) is not None or self.ellipsis

    @property
    def of_scenario(self) -> Change | None:
        """The change spoken of before, where this question goes on with it: "does that still fit?"."""
        short = self.ellipsis or _SCENARIO.search(self.text) is not None or self._of_figures
        named = any(mention.way != "pointing" for mention in self.refs.mentions)
        goes_on = self.change.empty and not named and short
        return self.context.change if goes_on else None

    @property
    def _of_figures(self) -> bool:
        """Whether it asks for a figure of the run right after another run was supposed: "mfu?", "cost of 1T tokens"."""
        of_now = _OF_NOW.search(self.text) is not None and not self.before_and_after
        return self.topic in _FIGURES and self.context.topic in {Topic.WHAT_IF, *_FIGURES} and not of_now

    @property
    def before_and_after(self) -> bool:
        """Whether it asks for what is and what would be: "before vs after"."""
        return _BEFORE_AND_AFTER.search(self.text) is not None

    @property
    def asks_money(self) -> bool:
        """Whether it asks what something costs in money."""
        return _MONEY.search(self.text) is not None

    @property
    def tokens(self) -> float | None:
        """Tokens to train on, as asked now or before."""
        named = next((a.value for a in self.amounts if a.unit == "tokens"), None)
        return named or self.context.tokens

    @property
    def timed(self) -> float | None:
        """Steps of which it asks how long they take, now or before: "how long are 5k steps?" · "in hours?"."""
        steps = [a.value for a in self.amounts if a.unit == "steps"]
        before = self.context.timed if self.ellipsis else None
        if len(steps) == 1 and (before is not None or asks_how_long(self.text)):
            return steps[0]
        return before if not steps else None

    @property
    def chip_hours(self) -> float | None:
        """A budget of chip hours: "5000 GPU hours", "a chip-hour budget of 5000"."""
        ranks = {mention.start for mention in self.refs.mentions if mention.way == "rank"}
        bare = [a for a in self.amounts if not a.unit and self.asks_chip_hours and a.start not in ranks]
        return next((a.value for a in [*self.amounts, *bare] if a.unit == "chip-hours" or a in bare), None)

    @property
    def asks_chip_hours(self) -> bool:
        """Whether it speaks of chip hours."""
        return _CHIP_HOURS.search(self.text) is not None

    @property
    def names_money(self) -> bool:
        """Whether it names a price or a sum, of whatever it is."""
        return any(amount.unit.startswith("$") for amount in self.amounts)

    @property
    def prices(self) -> dict[str, float]:
        """Prices of a chip hour by chip, where they name theirs."""
        return prices_in(self.text, self.amounts)

    @property
    def dollars_named(self) -> float | None:
        """A price of a chip hour that it names."""
        return next((a.value for a in self.amounts if a.unit == "$" and a.value <= _DEAREST), None)

    @property
    def dollars(self) -> float | None:
        """A price of a chip hour; for the tokens of before, that of before."""
        named = self.dollars_named
        goes_on = self.ellipsis or self.budget is not None or self.asks_money
        return named or (self.context.dollars if self.topic is Topic.THROUGHPUT and goes_on else None)

    @property
    def budget(self) -> float | None:
        """A sum of US dollars that is to be spent, and no price of a chip hour."""
        return next((a.value for a in self.amounts if a.unit == "$" and a.value > _DEAREST), None)
