from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asap.diagnosis import Bottleneck
from asap.history import HistoryQuery, add, list_records, parse_query, precedent_prior, precedent_weight, search_history
from asap.history.record import Outcome
from asap.plans import Plan

MESH = Plan.parse("model=8 data=8 seq=8")
EXPERT = Plan.parse("model=8 data=16 seq=4")
FIRST = HistoryQuery(
    bottleneck="compute", chip="v5p", devices=512, plan=MESH, text="compute-bound, little communication"
)


def test_the_papers_first_experiment_is_found_by_what_it_is():
    hit = search_history(FIRST)[0]
    assert hit.record.source.text == "ASAP paper, section 3.1"
    assert hit.record.after == EXPERT
    assert hit.similarity > 0.8
    assert "same bottleneck: compute" in hit.why
    assert "same chip: v5p" in hit.why
    assert "same scale: 512 devices" in hit.why


def test_the_papers_other_experiments_are_not_in_it():
    for record in list_records():
        chip = record.hardware.chip
        assert (chip, record.devices) not in {("v6e", 16), ("v5e", 256)}
        assert "paper" not in record.source.text or record.id == "asap-paper-v5p-512"


def test_nothing_else_is_close_to_the_papers_first_experiment():
    assert search_history(FIRST)[1].similarity < 0.5


def test_text_alone_finds_a_record():
    hits = search_history(HistoryQuery(text="rematerialisation from full to minimal ran out of memory on TPU v6e"))
    assert hits[0].record.hardware.chip == "v6e"
    assert hits[0].record.outcome is Outcome.OUT_OF_MEMORY


def test_a_question_about_nothing_weighs_nothing():
    assert {precedent_weight(hit) for hit in search_history(HistoryQuery(), 50)} == {0.0}


def test_what_is_added_is_found_at_once(record):
    search_history(FIRST)
    mesh = {"ici": {"model": 8, "data": 8, "seq": 8}}
    add(record("mine", before=mesh, after={"ici": {"model": 64, "data": 8}}, outcome="slower", speedup=0.5,
               bottleneck="compute", hardware={"chip": "v5p", "devices": 512}))  # fmt: skip
    hits = {hit.record.id: hit for hit in search_history(FIRST)}
    assert hits["mine"].record.origin == "user"
    assert precedent_weight(hits["mine"]) < 0


def test_most_similar_first_and_no_more_than_asked():
    hits = search_history(FIRST, 7)
    assert [hit.similarity for hit in hits] == sorted((hit.similarity for hit in hits), reverse=True)
    assert len(hits) == 7


def test_a_precedent_speaks_for_the_same_move_only():
    hit = search_history(FIRST)[0]
    assert precedent_prior(hit, MESH, EXPERT) == pytest.approx(precedent_weight(hit))
    assert precedent_prior(hit, MESH, Plan.parse("model=8 data=32 seq=2")) == pytest.approx(precedent_weight(hit))
    assert 0 < precedent_prior(hit, MESH, Plan.parse("model=4 data=16 seq=8")) < precedent_weight(hit)
    for other in (Plan.parse("model=8 data=4 seq=16"), Plan.parse("model=4 data=8 seq=16"), MESH):
        assert precedent_prior(hit, MESH, other) == 0


def test_doubt_makes_a_precedent_lighter(record):
    mesh = {"ici": {"model": 8, "data": 8, "seq": 8}}
    same = {"before": mesh, "bottleneck": "compute", "hardware": {"chip": "v5p", "devices": 512}}
    add(record("sure", **same, after={"ici": {"data": 512}}, confidence=0.9))
    add(record("unsure", **same, after={"ici": {"data": 512}}, confidence=0.3, speedup=1.3))
    weights = {hit.record.id: precedent_weight(hit) for hit in search_history(FIRST, 10)}
    assert 0 < weights["unsure"] < weights["sure"] < 1


def test_the_bundled_records_keep_their_promises():
    records = [one for one in list_records() if one.origin == "bundled"]
    published = [one for one in records if one.kind is None and one.id != "asap-paper-v5p-512"]
    assert 80 <= len(published) <= 150
    assert {one.outcome for one in published} == set(Outcome)
    assert len({one.hardware.chip for one in published}) >= 5
    assert len({one.model.size_class for one in published}) >= 5
    for one in published:
        assert len(one.source.rows) == 2, one.id
        assert one.source.url is None or one.source.url.startswith("https://"), one.id
        assert one.measured_before or one.measured_after, one.id
        assert one.before, one.id
        assert one.after, one.id
        assert len(one.summary) > 60, one.id


def test_the_records_of_a_checkout_are_plain_files():
    folder = Path(__file__).parent.parent.parent / "history_db"
    assert {path.suffix for path in folder.iterdir()} == {".jsonl"}


def read(text, **stated):
    return parse_query(HistoryQuery(text=text, **stated))


def test_words_name_bottleneck_size_hardware_and_plan():
    query = read("HBM-bound llama 8b on v5e-256, data=32 model=8")
    assert query.bottleneck is Bottleneck.HBM
    assert query.parameters == 8e9
    assert (query.chip, query.devices) == ("v5e", 256)
    assert query.plan == Plan.parse("data=32 model=8")


def test_memory_that_is_full_is_not_memory_that_is_slow():
    assert read("ran out of memory in HBM").bottleneck is Bottleneck.MEMORY_CAPACITY
    assert read("all-reduce takes half of the step").bottleneck is Bottleneck.COMMUNICATION


def test_counts_of_chips():
    query = read("a 70B model on 64 H100 GPUs and 1.5 TB of data")
    assert (query.chip, query.parameters) == ("h100", 70e9)
    assert read("a 70B model on 64 GPUs").devices == 64


def test_what_was_stated_stands():
    query = read("compute-bound on v5e", bottleneck="hbm", chip="v6e")
    assert (query.bottleneck, query.chip) == (Bottleneck.HBM, "v6e")


def test_words_lead_to_runs_on_that_chip():
    hits = search_history(read("hbm bound 8b model on v6e, data=8"), 3)
    assert {hit.record.hardware.chip for hit in hits} == {"v6e"}
    assert "same chip: v6e" in hits[0].why


@given(st.text())
def test_any_text_can_be_read(text):
    assert read(text).text == text
