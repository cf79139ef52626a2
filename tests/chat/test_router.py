"""Free words to queries: how often the right one comes at once, among three, and not at all."""

import csv
from pathlib import Path

import pytest

from asap.answers.inquiries import Inquiries
from asap.chat.classifier import examples
from asap.chat.router import route
from tests.cases import cases

pytestmark = pytest.mark.slow
DATA = Path(__file__).parents[1] / "data" / "chat"
SAME = {frozenset({"operation", "operations"})}


def read(name: str) -> list[dict[str, str]]:
    with (DATA / name).open(encoding="utf-8") as file:
        return list(csv.DictReader(file, delimiter="\t"))


@pytest.fixture(scope="module")
def inquiry(home):
    return Inquiries().of("llama-8b-tensor-16")


def counts(rows, inquiry) -> tuple[int, int, int]:
    """At once and right, right among three, at once and wrong."""
    once = among = wrong = 0
    for row in rows:
        found = route(row["question"], inquiry)
        right = {name for pair in SAME if row["query"] in pair for name in pair} | {row["query"]}
        first = found.command.name if found.command else None
        once += first in right
        wrong += first is not None and first not in right
        among += any(one.name in right for one in found.offered)
    return once, among, wrong


def test_no_question_is_an_example():
    asked = [row["question"].lower().strip("?. ") for row in (*read("questions.tsv"), *read("calibration.tsv"))]
    assert not {text.lower().strip("?. ") for _, text in examples()}.intersection(asked)


def test_the_threshold_is_calibrated_on_phrasings_that_nothing_was_tuned_on(inquiry):
    once, _, wrong = counts([row for row in read("calibration.tsv") if row["half"] == "calibrated"], inquiry)
    assert once / (once + wrong) >= 0.85


@cases("half, once_before, among_before")
def test_questions_find_their_query_no_less_often_than_before(inquiry, half, once_before, among_before):
    rows = [row for row in read("questions.tsv") if row["half"] == half]
    once, among, _ = counts(rows, inquiry)
    assert (once >= once_before, among >= among_before) == (True, True), (once, among)
