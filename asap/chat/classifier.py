"""Which query free words ask: retrieval over example phrasings, by words, letters and meaning.

Kernel ridge regression over the examples: similarity is the weighted mean of three cosines (words and word pairs,
letters of words, latent semantics of the notes), and each query has a regression of its own (Rifkin, Yeo and Poggio,
*Regularized least-squares classification*, 2003).
"""

import difflib
import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from asap.knowledge.index.terms import stems, terms

Matrix = NDArray[np.float32]
RIDGE = 0.2
"""Regularisation; 0.15 to 0.6 change the leave-one-out accuracy by less than three points."""
_WORDS, _SPELLING, _MEANING = 0.4, 0.4, 0.2
_LETTERS = (3, 4)
_ALIKE, _LEAST_LETTERS = 0.85, 4
"""Share of letters from which a word that no example has is one of theirs, misspelt; and letters of the shortest."""


@dataclass(frozen=True)
class Match:
    """A query with its score: about 1 for words like its examples, 0 for words like none of them."""

    label: str
    score: float


class Classifier:
    """The examples, fitted once."""

    def __init__(self, examples: Sequence[tuple[str, str]]) -> None:
        self.labels = list(dict.fromkeys(label for label, _ in examples))
        texts = [text for _, text in examples]
        self._known = {word for text in texts for word in _words(text)}
        stems(" ".join(texts))
        self._spaces = [_Space(_word_features, texts), _Space(_letter_features, texts)]
        self._meanings = _meanings(texts)
        targets: Matrix = np.array(
            [[float(label == own) for label in self.labels] for own, _ in examples], dtype=np.float32
        )
        kernel: Matrix = self._similarities(texts)
        kernel[np.diag_indices_from(kernel)] += RIDGE
        self._weights: Matrix = np.linalg.solve(kernel, targets)

    def matches(self, text: str) -> list[Match]:
        """All queries, best first."""
        scores = (self._similarities([self._spelt(text)]) @ self._weights)[0]
        return [Match(self.labels[index], float(scores[index])) for index in np.argsort(-scores)]

    def _spelt(self, text: str) -> str:
        """The text with words of the examples in place of those that are misspelt."""
        for word in _words(text) - self._known:
            near = difflib.get_close_matches(word, self._known, 1, _ALIKE) if len(word) >= _LEAST_LETTERS else []
            text = re.sub(rf"\b{word}\b", near[0], text, flags=re.IGNORECASE) if near else text
        return text

    def _similarities(self, texts: Sequence[str]) -> Matrix:
        words, letters = (space.similarities(texts) for space in self._spaces)
        near = _meanings(texts) @ self._meanings.T
        return (_WORDS * words + _SPELLING * letters + _MEANING * near).astype(np.float32)


@cache
def examples() -> tuple[tuple[str, str], ...]:
    """Each example with its query: ``examples.txt`` has a heading for each query and one phrasing a line."""
    found, label = [], ""
    for line in Path(__file__).with_name("examples.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("# "):
            label = line.removeprefix("# ")
        elif line:
            found.append((label, re.sub(r"\b(PLAN|RANK|NUM|HW|OP)\b", lambda m: f"z{m.group().lower()}", line)))
    return tuple(found)


@cache
def classifier() -> Classifier:
    """The classifier over the examples that come with the package."""
    return Classifier(examples())


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
