"""Which topic a message is about: retrieval over example phrasings, by words, letters and meaning.

Kernel ridge regression over the examples: similarity is the weighted mean of three cosines (words and word pairs,
letters of words, latent semantics of the notes), and each topic has a regression of its own (Rifkin, Yeo and Poggio,
*Regularized least-squares classification*, 2003). Leaving one example out has a closed form, which calibrates the
threshold; it takes an inverse, so the threshold is kept here and a test calibrates it anew.
"""

import difflib
import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from asap.chat.understanding.topics.examples import examples
from asap.chat.understanding.topics.topics import Topic
from asap.knowledge.index.terms import stems, terms

Matrix = NDArray[np.float32]
RIDGE = 0.2
"""Regularisation; 0.15 to 0.6 change the leave-one-out accuracy by less than three points."""
THRESHOLD = 0.37
"""Score from which an example that is left out is as likely taken for its own topic as for another."""
PERHAPS = 0.25
"""Score from which it is as likely taken for its own topic as one time in three."""
THIN = 0.45
"""Score below which the words of a message have to be those of the topic as well."""
_WORDS, _SPELLING, _MEANING = 0.4, 0.4, 0.2
_LETTERS = (3, 4)
_NEWTON_STEPS = 12
_ALIKE, _LEAST_LETTERS = 0.85, 4
"""Share of letters from which a word that no example has is one of theirs, misspelt; and letters of the shortest."""


@dataclass(frozen=True)
class Match:
    """A topic with its score: about 1 for a message like its examples, 0 for one like none of them."""

    topic: Topic
    score: float


class Retrieval:
    """The examples, fitted once."""

    def __init__(self, examples: Sequence[tuple[Topic, str]]) -> None:
        self.topics = list(dict.fromkeys(topic for topic, _ in examples))
        texts = [text for _, text in examples]
        self._size = len(texts)
        self._frequency = Counter(stem for text in texts for stem in set(stems(text)))
        self._of_topic: dict[Topic, set[str]] = {topic: set() for topic in self.topics}
        for topic, text in examples:
            self._of_topic[topic] |= set(stems(text))
        self._words = {word for text in texts for word in _words(text)}
        stems(" ".join(texts))
        self._spaces = [_Space(_word_features, texts), _Space(_letter_features, texts)]
        self._meanings = _meanings(texts)
        self._targets: Matrix = np.array(
            [[float(topic is own) for topic in self.topics] for own, _ in examples], dtype=np.float32
        )
        self._kernel: Matrix = self._similarities(texts)
        self._kernel[np.diag_indices_from(self._kernel)] += RIDGE
        self._weights: Matrix = np.linalg.solve(self._kernel, self._targets)

    def matches(self, text: str) -> list[Match]:
        """All topics, best first."""
        scores = (self._similarities([self._spelt(text)]) @ self._weights)[0]
        return [Match(self.topics[index], float(scores[index])) for index in np.argsort(-scores)]

    def covered(self, text: str, topic: Topic, small: Collection[str]) -> float:
        """Share of a message that the examples of a topic say too; rare words count more, ``small`` ones not at all."""
        said = [stem for stem in set(stems(self._spelt(text))) if stem.isalpha() and stem not in small]
        weights = {stem: math.log(1 + self._size / self._frequency.get(stem, 1)) for stem in said}
        known = sum(weight for stem, weight in weights.items() if stem in self._of_topic[topic])
        return known / sum(weights.values()) if weights else 1.0

    def calibrated(self) -> tuple[float, float]:
        """Accuracy with each example left out, and the score from which an answer is as likely right as wrong."""
        left_out = self._targets - self._weights / np.diag(np.linalg.inv(self._kernel))[:, None]
        right = left_out.argmax(axis=1) == self._targets.argmax(axis=1)
        slope, offset = _logistic(left_out.max(axis=1), right)
        return float(right.mean()), -offset / slope

    def _spelt(self, text: str) -> str:
        """The text with words of the examples in place of those that are misspelt."""
        for word in _words(text) - self._words:
            near = difflib.get_close_matches(word, self._words, 1, _ALIKE) if len(word) >= _LEAST_LETTERS else []
            text = re.sub(rf"\b{word}\b", near[0], text, flags=re.IGNORECASE) if near else text
        return text

    def _similarities(self, texts: Sequence[str]) -> Matrix:
        words, letters = (space.similarities(texts) for space in self._spaces)
        near = _meanings(texts) @ self._meanings.T
        return (_WORDS * words + _SPELLING * letters + _MEANING * near).astype(np.float32)


@cache
def retrieval() -> Retrieval:
    """The retrieval over the examples that come with the package."""
    return Retrieval([(topic, _masks(text)) for topic, text in examples()])


def _masks(text: str) -> str:
    """Placeholders as words that no message has."""
    return re.sub(r"\b(PLAN|RANK|NUM|HW|OP)\b", lambda match: f"z{match.group().lower()}", text)


class _Space:
    """Unit vectors of weighted features, listed by feature; what no example has counts in their length alone."""

    def __init__(self, features: Callable[[str], list[str]], texts: Sequence[str]) -> None:
        self._features = features
        self._size = len(texts)
        self._unseen = math.log(1 + len(texts))
        counted = [Counter(features(text)) for text in texts]
        frequency = Counter(feature for counts in counted for feature in counts)
        self._idf = {feature: math.log(1 + len(texts) / seen) for feature, seen in frequency.items()}
        listed: dict[str, list[tuple[int, float]]] = {feature: [] for feature in frequency}
        for row, counts in enumerate(counted):
            for feature, weight in self._vector(counts).items():
                listed[feature].append((row, weight))
        self._rows = {feature: np.array([row for row, _ in pairs]) for feature, pairs in listed.items()}
        self._weights = {
            feature: np.array([weight for _, weight in pairs], dtype=np.float32) for feature, pairs in listed.items()
        }

    def similarities(self, texts: Sequence[str]) -> Matrix:
        """Cosines of texts with the examples, (texts, examples)."""
        return np.array([self._cosines(self._vector(Counter(self._features(text)))) for text in texts])

    def _cosines(self, vector: Mapping[str, float]) -> Matrix:
        known = [feature for feature in vector if feature in self._rows]
        if not known:
            return np.zeros(self._size, dtype=np.float32)
        rows = np.concatenate([self._rows[feature] for feature in known])
        weights = np.concatenate([self._weights[feature] * vector[feature] for feature in known])
        return np.bincount(rows, weights, self._size).astype(np.float32)

    def _vector(self, counts: Counter[str]) -> dict[str, float]:
        found = {name: (1 + math.log(count)) * self._idf.get(name, self._unseen) for name, count in counts.items()}
        length = math.hypot(*found.values())
        return {name: weight / length for name, weight in found.items()} if length else found


def _word_features(text: str) -> list[str]:
    words = ["<", *stems(text), ">"]
    pairs = [f"{first}_{second}" for first, second in pairwise(words)]
    return [*words[1:-1], *pairs, *(term for term in terms(text) if term.startswith("c_"))]


def _words(text: str) -> set[str]:
    return set(re.findall(r"[^\W\d_]+", text.lower()))


def _letter_features(text: str) -> list[str]:
    words = [f" {word} " for word in re.findall(r"[^\W_]+", text.lower())]
    return [word[at : at + size] for word in words for size in _LETTERS for at in range(len(word) - size + 1)]


def _meanings(texts: Sequence[str]) -> Matrix:
    """Vectors of the embedder of the notes."""
    from asap.knowledge.index.embedders import bundled_embedder

    embedder = bundled_embedder()
    return np.array([embedder.embed_query(text) for text in texts], dtype=np.float32)


def _logistic(scores: NDArray[np.float32], right: NDArray[np.bool_]) -> tuple[float, float]:
    """Slope and offset of the log odds of being right by score (Platt, 1999), by Newton's method."""
    inputs = np.stack([scores, np.ones_like(scores)], axis=1).astype(np.float64)
    weights = np.zeros(2)
    for _ in range(_NEWTON_STEPS):
        chance = 1 / (1 + np.exp(-inputs @ weights))
        curvature = inputs.T * (chance * (1 - chance)) @ inputs
        weights = weights + np.linalg.solve(curvature, inputs.T @ (right - chance))
    return float(weights[0]), float(weights[1])
