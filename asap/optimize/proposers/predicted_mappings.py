"""Proposes mapping programs that are predicted to be fast; what was evaluated corrects the prediction near by."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from asap.optimize.outcome import Configuration, Suggestion, Try
from asap.optimize.proposers.mapping_rules import MappingRules, meaning
from asap.optimize.proposers.model_guided import ModelGuided


@dataclass(frozen=True)
class PredictedMappings:
    """Repairs what was wrong; else tries what is expected to save most.

    Args:
        rules: begin and repair; they propose alone once all that was predicted has been tried.
        guided: knows what is predicted, of programs that pass the checks.
    """

    rules: MappingRules
    guided: ModelGuided

    def propose(self, tries: Sequence[Try]) -> Suggestion | None:
        """The next program; ``None`` once nothing new is found."""
        seen = [each.model_copy(update={"configuration": self._as_predicted(each.configuration)}) for each in tries]
        needed = self.rules.needed(tries)
        if needed is None:
            return self.guided.propose(seen) or self.rules.propose(tries)
        expected = self.guided.expected(self._as_predicted(needed.configuration), seen)
        return needed.model_copy(update={"predicted": expected.predicted}) if expected else needed

    def _as_predicted(self, text: Configuration) -> Configuration:
        """The predicted program that decides the same; the text itself if there is none."""
        return self._predicted.get(meaning(text), text)

    @cached_property
    def _predicted(self) -> dict[frozenset[str], Configuration]:
        return {meaning(text): text for text in self.guided.prior.configurations}
