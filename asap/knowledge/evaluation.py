"""How well the search finds the right section: recall and mean reciprocal rank over a file of questions."""

from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from asap.core.errors import BadInputError
from asap.core.files import read_json_lines
from asap.knowledge.search import search_knowledge

DEPTH = 20  # hits that are looked at of each question; beyond them a rank adds less than 0.05


class Question(BaseModel):
    """A question and the places, ``chapter#anchor``, that answer it."""

    model_config = ConfigDict(frozen=True)

    question: str
    anchors: tuple[str, ...] = Field(min_length=1)


class Miss(BaseModel):
    """A question whose answer was not among the first five."""

    model_config = ConfigDict(frozen=True)

    question: str
    wanted: tuple[str, ...]
    found: tuple[str, ...]


class RetrievalScores(BaseModel):
    """Shares of questions with a right note among the first 1, 3 and 5; MRR counts ranks down to :data:`DEPTH`."""

    model_config = ConfigDict(frozen=True)

    questions: int
    recall_at_1: float
    recall_at_3: float
    recall_at_5: float
    mrr: float
    misses: tuple[Miss, ...]


def evaluate(path: Path) -> RetrievalScores:
    """Ask every question of a JSONL file.

    Raises:
        NotFoundError: there is no such file.
        BadInputError: a line is not a question, with file and line; or there is none.
    """
    questions = _questions(path)
    ranks: list[int | None] = []
    misses: list[Miss] = []
    for question in questions:
        places = [hit.note.citation.place for hit in search_knowledge(question.question, DEPTH)]
        rank = next((rank for rank, place in enumerate(places, start=1) if place in question.anchors), None)
        ranks.append(rank)
        if rank is None or rank > 5:
            misses.append(Miss(question=question.question, wanted=question.anchors, found=tuple(places[:5])))
    recalls = [sum(rank is not None and rank <= depth for rank in ranks) / len(ranks) for depth in (1, 3, 5)]
    return RetrievalScores(
        questions=len(questions),
        recall_at_1=recalls[0],
        recall_at_3=recalls[1],
        recall_at_5=recalls[2],
        mrr=sum(1 / rank for rank in ranks if rank is not None) / len(ranks),
        misses=tuple(misses),
    )


def _questions(path: Path) -> list[Question]:
    questions: list[Question] = []
    for place, line in read_json_lines(path):
        try:
            questions.append(Question.model_validate_json(line))
        except ValidationError as error:
            hint = 'write {"question": "…", "anchors": ["chapter#anchor"]}'
            raise BadInputError("is not a question", where=place, hint=hint) from error
    if not questions:
        raise BadInputError("holds no question", where=str(path))
    return questions
