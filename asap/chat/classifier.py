"""Which query free words ask, by the words, pairs of words and letters that they share with example phrasings.

Kernel ridge regression over the examples: similarity is the weighted mean of three cosines, and each query has a
regression of its own (Rifkin, Yeo and Poggio, *Regularized least-squares classification*, 2003). The cosines are of
sparse vectors, so what is fitted comes down to a weight for each feature and query, which is kept for later processes.
"""

import difflib
import math
import os
import re
import zipfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asap.core.files import home, private_file
from asap.knowledge.document import files_digest
from asap.knowledge.index.terms import SYNONYMS, stems, terms

EXAMPLES = Path(__file__).with_name("examples.txt")
RIDGE = 0.2
"""Regularisation of a query with as many examples as the mean; of others in proportion, so that few examples count as
much as many. 0.1 to 0.5 change the share of right answers by less than two points."""
_UNSEEN = 0.7
"""Weight of a feature that no example has, as a share of one that a single example has."""
_ALIKE, _LEAST_LETTERS = 0.85, 4
"""Share of letters from which a word that no example has is one of theirs, misspelt; and letters of the shortest."""


class Classifier:
    """What the examples come down to, as arrays that a file keeps.

    Args:
        arrays: ``labels``, ``words`` and ``names``: the queries, the words of the examples and their features, one to a
            line; ``rarity`` of each feature, and of one that no example has; ``weights``, (features, queries).
    """

    def __init__(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self.arrays = arrays
        self._labels, words, names = (str(arrays[name]).split("\n") for name in ("labels", "words", "names"))
        self._known, self._columns = {*words}, {name: column for column, name in enumerate(names)}

    @classmethod
    def fit(cls, examples: Sequence[tuple[str, str]]) -> "Classifier":
        """Learn from phrasings, each behind its query."""
        from scipy.linalg import solve
        from scipy.sparse import csr_array

        labels, texts = list(dict.fromkeys(label for label, _ in examples)), [text for _, text in examples]
        stems(" ".join(texts))  # all at once
        frequency = Counter(name for text in texts for _, counts in _counted(text) for name in counts)
        lines = {"labels": labels, "names": frequency, "words": {word for text in texts for word in _words(text)}}
        arrays = {name: np.array("\n".join(each)) for name, each in lines.items()}
        seen = np.array([*frequency.values()], np.float32)
        arrays["rarity"] = np.append(np.log(1 + len(texts) / seen), np.float32(_UNSEEN * math.log(1 + len(texts))))
        vectors = [*map(cls(arrays)._vector, texts)]
        columns, values = (np.concatenate(part) for part in zip(*vectors, strict=True))
        ends = np.cumsum([0, *(len(found) for found, _ in vectors)])
        matrix = csr_array((values, columns, ends), (len(texts), len(frequency)))
        targets = np.array([[label == own for label in labels] for own, _ in examples], np.float32)
        kernel = (matrix @ matrix.T).toarray()
        kernel[np.diag_indices_from(kernel)] += RIDGE * (targets @ targets.sum(axis=0)) * len(labels) / len(texts)
        return cls(arrays | {"weights": matrix.T @ solve(kernel, targets, assume_a="pos", overwrite_a=True)})

    def scores(self, text: str) -> dict[str, float]:
        """Each query with its score: about 1 for words like its examples, 0 for words like none of them."""
        columns, values = self._vector(self._spelt(text))
        return dict(zip(self._labels, (values @ self.arrays["weights"][columns]).tolist(), strict=True))

    def _vector(self, text: str) -> tuple[NDArray[np.intp], NDArray[np.float32]]:
        """Features of a text that the examples have, and their values; what they lack counts in the length alone."""
        columns, values = [], []
        for share, counts in _counted(text):
            places = [self._columns.get(name, -1) for name in counts]
            part = self.arrays["rarity"][places] * (1 + np.log([*counts.values()]))
            columns += places
            values += (part * math.sqrt(share / max(part @ part, 1e-9))).tolist()
        found = np.array(columns, np.intp)
        return found[found >= 0], np.array(values, np.float32)[found >= 0]

    def _spelt(self, text: str) -> str:
        """The text with words of the examples in place of those that are misspelt."""
        for word in _words(text) - self._known:
            near = difflib.get_close_matches(word, self._known, 1, _ALIKE) if len(word) >= _LEAST_LETTERS else []
            text = re.sub(rf"\b{word}\b", near[0], text, flags=re.IGNORECASE) if near else text
        return text


@cache
def examples() -> tuple[tuple[str, str], ...]:
    """Each example with its query: ``examples.txt`` has a heading for each query and one phrasing a line."""
    found, label = [], ""
    for line in EXAMPLES.read_text(encoding="utf-8").splitlines():
        if line.startswith("# "):
            label = line.removeprefix("# ")
        elif line:
            found.append(
                (label, re.sub(r"\b(PLAN|RANK|NUM|HW|OP|SETTING|AXIS|CHIP)\b", lambda m: f"z{m.group().lower()}", line))
            )
    return tuple(found)


@cache
def classifier() -> Classifier:
    """The classifier over the examples that come with the package, fitted in the first process that asks for it."""
    source, path = files_digest([EXAMPLES, SYNONYMS, Path(__file__)]), home() / "classifier.npz"
    with suppress(OSError, ValueError, KeyError, zipfile.BadZipFile), np.load(path) as kept:
        if str(kept["source"]) == source:
            return Classifier({**kept})
    fitted = Classifier.fit(examples())
    with suppress(OSError):  # then the next process fits it again
        temporary = private_file(path.with_name(f".{path.stem}.{os.getpid()}.npz"))
        np.savez(temporary, allow_pickle=False, source=np.array(source), **fitted.arrays)
        temporary.replace(path)
    return fitted


def _counted(text: str) -> list[tuple[float, Counter[str]]]:
    """Features of each kind with the share of that kind in a similarity; names of different kinds never meet."""
    return [(share, Counter(features(text))) for share, features in _KINDS]


def _word_features(text: str) -> list[str]:
    words = ["<", *stems(text), ">"]
    near = [f"{a}_{b}" for a, b in pairwise(words)] + [f"{a}__{b}" for a, b in zip(words, words[2:], strict=False)]
    return [*words[1:-1], *near, *(term for term in terms(text) if term.startswith("c_"))]


def _pair_features(text: str) -> list[str]:
    """Pairs of terms at most four apart, in whichever order."""
    said = terms(text)
    pairs = {(min(a, b), max(a, b)) for at, a in enumerate(said) for b in said[at + 1 : at + 5] if a != b}
    return [f"{a}&{b}" for a, b in sorted(pairs)]


def _letter_features(text: str) -> list[str]:
    words = [f" {word} " for word in re.findall(r"[^\W_]+", text.lower())]
    return [f"~{word[at : at + size]}" for word in words for size in (3, 4) for at in range(len(word) - size + 1)]


_KINDS: tuple[tuple[float, Callable[[str], list[str]]], ...] = (
    (0.45, _word_features),
    (0.4, _letter_features),
    (0.15, _pair_features),
)


def _words(text: str) -> set[str]:
    return set(re.findall(r"[^\W\d_]+", text.lower()))
