from collections import Counter
from pathlib import Path

import pytest

from asap.core.errors import BadInputError, NotFoundError
from asap.knowledge import evaluate, get_note, list_notes, rebuild, search_knowledge
from tests.cases import cases

QUESTIONS = Path(__file__).parent.parent / "data" / "knowledge" / "questions.jsonl"


def test_the_bundled_notes_answer_engineers():
    scores = evaluate(QUESTIONS)
    assert scores.questions == 34
    assert scores.recall_at_3 >= 0.85
    assert scores.recall_at_5 >= 0.95
    assert scores.mrr >= 0.8
    assert scores.recall_at_1 <= scores.recall_at_3 <= scores.recall_at_5
    assert len(scores.misses) == round(scores.questions * (1 - scores.recall_at_5))


def test_a_hit_says_why_and_can_be_shown():
    hit = search_knowledge("why is my FSDP run communication bound", limit=1)[0]
    assert "fsdp" in hit.why[0]
    assert 0 < hit.score <= 1
    assert get_note(hit.note.id) == hit.note


def test_hits_come_from_different_sections_best_first():
    hits = search_knowledge("tensor parallelism limit of the degree", limit=5)
    assert len(hits) == 5
    assert max(Counter(hit.note.citation.place for hit in hits).values()) <= 2
    assert len({hit.note.id for hit in hits}) == 5


def test_the_same_question_has_the_same_answer():
    first, second = (search_knowledge("pipeline bubble", 8) for _ in range(2))
    assert first == second


@pytest.mark.parametrize("query", ["", "what is the", "?!", '" OR 1=1 --', "NEAR(a b) *", "a" * 10_000])
def test_a_query_is_words_and_nothing_else(query):
    assert isinstance(search_knowledge(query), list)


def test_a_query_that_says_nothing_finds_nothing():
    assert search_knowledge("what is the") == []


def test_an_unknown_note_is_said_so():
    with pytest.raises(NotFoundError, match="no-such-note"):
        get_note("no-such-note")


def test_rebuilding_counts_all_notes():
    assert rebuild() == len(list_notes())


@cases("content, complaint")
def test_a_file_that_holds_no_questions_is_refused(tmp_path, content, complaint):
    path = tmp_path / "q.jsonl"
    path.write_text(content)
    with pytest.raises(BadInputError, match=complaint):
        evaluate(path)


def test_questions_that_are_not_there_are_said_so(tmp_path):
    with pytest.raises(NotFoundError):
        evaluate(tmp_path / "none.jsonl")


def test_a_word_that_nobody_uses_finds_nothing():
    assert search_knowledge("zorblax") == []
