"""Which query free words ask: retrieval over example phrasings, by words, letters and meaning.

Kernel ridge regression over the examples: similarity is the weighted mean of three cosines (words and pairs of words
side by side or one apart, letters of words, latent semantics of the notes), and each query has a regression of its own
(Rifkin, Yeo and Poggio, *Regularized least-squares classification*, 2003).
"""

import difflib
import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from asap.knowledge.index.terms import stems, terms

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Matrix = NDArray[np.float32]
RIDGE = 0.2
"""Regularisation of a query with as many examples as the mean; of others in proportion, so that few examples count as
much as many. 0.1 to 0.8 change the leave-one-out accuracy by less than one point."""
_WORDS, _SPELLING, _MEANING = 0.4, 0.4, 0.2
_LETTERS = (3, 4)
_UNSEEN = 0.7
"""Weight of a feature that no example has, as a share of one that a single example has."""
_ALIKE, _LEAST_LETTERS = 0.85, 4
"""Share of letters from which a word that no example has is one of theirs, misspelt; and letters of the shortest."""


class Classifier:
    """The examples, fitted once."""

    def __init__(self, examples: Sequence[tuple[str, str]]) -> None:
        from scipy.linalg import solve

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
        kernel[np.diag_indices_from(kernel)] += RIDGE * (targets @ targets.sum(axis=0)) * len(self.labels) / len(texts)
        self._weights = np.asarray(solve(kernel, targets, assume_a="pos", overwrite_a=True), dtype=np.float32)

    def scores(self, text: str) -> dict[str, float]:
        """Each query with its score: about 1 for words like its examples, 0 for words like none of them."""
        return dict(
            zip(self.labels, (self._similarities([self._spelt(text)]) @ self._weights)[0].tolist(), strict=True)
        )

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
            found.append(
                (label, re.sub(r"\b(PLAN|RANK|NUM|HW|OP|SETTING|AXIS|CHIP)\b", lambda m: f"z{m.group().lower()}", line))
            )
    return tuple(found)


@cache
def classifier() -> Classifier:
    """The classifier over the examples that come with the package."""
    return Classifier(examples())


class _Space:
    """Unit vectors of weighted features; what no example has counts in their length alone."""

    def __init__(self, features: Callable[[str], list[str]], texts: Sequence[str]) -> None:
        self._features = features
        counted = [Counter(features(text)) for text in texts]
        frequency = Counter(feature for counts in counted for feature in counts)
        self._unseen = _UNSEEN * math.log(1 + len(texts))
        self._idf = {feature: math.log(1 + len(texts) / seen) for feature, seen in frequency.items()}
        self._column = {feature: column for column, feature in enumerate(frequency)}
        self._examples = self._matrix(counted)

    def similarities(self, texts: Sequence[str]) -> Matrix:
        """Cosines of texts with the examples, (texts, examples)."""
        return (self._matrix([Counter(self._features(text)) for text in texts]) @ self._examples.T).toarray()

    def _matrix(self, texts: Sequence[Counter[str]]) -> "csr_array":
        from scipy.sparse import csr_array

        rows, columns, weights = [], [], []
        for row, counts in enumerate(texts):
            vector = {name: (1 + math.log(count)) * self._idf.get(name, self._unseen) for name, count in counts.items()}
            length = math.hypot(*vector.values())
            known = [name for name in vector if name in self._column]
            rows += [row] * len(known)
            columns += [self._column[name] for name in known]
            weights += [vector[name] / length for name in known]
        return csr_array((np.array(weights, dtype=np.float32), (rows, columns)), (len(texts), len(self._column)))


def _word_features(text: str) -> list[str]:
    words = ["<", *stems(text), ">"]
    near = [f"{a}_{b}" for a, b in pairwise(words)] + [f"{a}__{b}" for a, b in zip(words, words[2:], strict=False)]
    return [*words[1:-1], *near, *(term for term in terms(text) if term.startswith("c_"))]


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
