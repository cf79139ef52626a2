"""What a text is about, as terms: word stems and the concepts that its phrases name.

Concepts come from ``synonyms.toml``: *FSDP*, *ZeRO-3* and *fully sharded* all yield ``c_fsdp`` besides their
stems, so that a question and a note meet whichever word either of them uses.
"""

import re
import sqlite3
import threading
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from pathlib import Path

CONCEPT = "c_"
SYNONYMS = Path(__file__).with_name("synonyms.toml")
_WORD = re.compile(r"[a-z]+[0-9]+[a-z]*|[a-z]+|[0-9]+")
_BRITISH = re.compile(r"is(ation|ations|e|ed|es|ing)$")
_STOP = frozenset((
    "a", "about", "after", "an", "and", "any", "are", "as", "at", "be", "because", "been", "before", "but", "by",
    "can", "could", "did", "do", "does", "each", "every", "for", "from", "had", "has", "have", "how", "i", "if",
    "in", "into", "is", "it", "its", "just", "me", "more", "most", "much", "many", "my", "no", "nor", "not", "of",
    "off", "on", "one", "only", "or", "other", "our", "per", "should", "so", "some", "such", "than", "that", "the",
    "their", "them", "then", "there", "these", "they", "this", "those", "to", "too", "us", "use", "used", "using",
    "very", "was", "we", "were", "what", "when", "where", "which", "while", "who", "why", "will", "with", "would",
    "you", "your",
))  # fmt: skip


class _Stemmer:
    """The Porter stemmer that SQLite's full-text search carries."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}
        self._lock = threading.Lock()
        self._database = sqlite3.connect(":memory:", check_same_thread=False)
        self._database.execute("CREATE VIRTUAL TABLE words USING fts5(word, tokenize='porter ascii')")
        self._database.execute("CREATE VIRTUAL TABLE stems USING fts5vocab(words, 'instance')")

    def __call__(self, words: Sequence[str]) -> list[str]:
        unknown = [word for word in dict.fromkeys(words) if word not in self._known]
        if unknown:
            with self._lock:
                self._learn(unknown)
        return [self._known[word] for word in words]

    def _learn(self, words: list[str]) -> None:
        rows = ((row, _BRITISH.sub(r"iz\1", word) if len(word) > 5 else word) for row, word in enumerate(words))
        self._database.execute("DELETE FROM words")
        self._database.executemany("INSERT INTO words(rowid, word) VALUES (?, ?)", rows)
        self._known.update((words[row], stem) for stem, row in self._database.execute("SELECT term, doc FROM stems"))


@cache
def _stemmer() -> _Stemmer:
    return _Stemmer()


def _stems(words: Sequence[str]) -> list[str]:
    return _stemmer()(words)


@lru_cache(maxsize=4096)
def terms(text: str) -> tuple[str, ...]:
    """Stems without function words, then one concept term for each phrase found."""
    words = stems(text)
    return (*(word for word in words if word not in _stop_stems()), *concepts(words))


def stems(text: str) -> list[str]:
    """The stem of every word and number, in order."""
    return _stems(_WORD.findall(text.lower()))


def concepts(words: Sequence[str]) -> list[str]:
    """Concept terms of the synonym phrases that occur in a sequence of stems."""
    table = _phrases()
    found: list[str] = []
    for position, word in enumerate(words):
        for phrase, concept in table.get(word, ()):
            if tuple(words[position : position + len(phrase)]) == phrase:
                found.append(concept)
    return found


def readable(found: Iterable[str], query: str) -> list[str]:
    """Terms as the query wrote them; a concept by its name."""
    words = _WORD.findall(query.lower())
    written = dict(zip(_stems(words), words, strict=True))
    return [term.removeprefix(CONCEPT).replace("_", " ") if term not in written else written[term] for term in found]


@cache
def _stop_stems() -> frozenset[str]:
    return frozenset(_stems(sorted(_STOP)))


@cache
def _phrases() -> dict[str, tuple[tuple[tuple[str, ...], str], ...]]:
    import tomllib

    groups = tomllib.loads(SYNONYMS.read_text(encoding="utf-8")).values()
    stems(" ".join(phrase for group in groups for phrases in group.values() for phrase in phrases))  # all at once
    table: dict[str, tuple[tuple[tuple[str, ...], str], ...]] = {}
    for group in groups:
        for concept, phrases in group.items():
            for phrase in {tuple(stems(phrase)) for phrase in phrases}:
                table[phrase[0]] = (*table.get(phrase[0], ()), (phrase, CONCEPT + concept))
    return table
