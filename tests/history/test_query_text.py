from hypothesis import given
from hypothesis import strategies as st

from asap.diagnosis import Bottleneck
from asap.history import HistoryQuery, parse_query, search_history
from asap.plans import Plan


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
