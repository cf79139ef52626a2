import pytest

from asap.core.errors import BadInputError, InsufficientEvidenceError
from asap.experiments import Experiment
from asap.history import add, record_from_experiments, search_history
from asap.history.query import HistoryQuery
from asap.history.record import Outcome
from asap.plans import Plan


def experiment(id_, plan, **fields):
    told = {
        "model": {"name": "tiny", "layers": 2, "d_model": 64, "heads": 4, "kv_heads": 4, "head_dim": 16, "d_ff": 256,
                  "vocab": 1000},
        "workload": {"global_batch": 32, "sequence_length": 128},
        "hardware": {"name": "v5p-8", "chip": "v5p", "devices": 8},
        "profile_path": f"profiles/{id_}",
        "plan": Plan.parse(plan) if plan else None,
    }  # fmt: skip
    return Experiment.model_validate({"id": id_, **told, **fields})


def test_two_runs_make_a_record_that_can_be_found():
    made = record_from_experiments(
        experiment("a", "model=8"), experiment("b", "model=2 data=4"), 2.0, 1.0, bottleneck="compute"
    )
    assert (made.outcome, made.speedup, made.id) == (Outcome.IMPROVED, 2.0, "a--b")
    assert made.other_changes == ()
    assert made.profile_links == ("profiles/a", "profiles/b")
    assert "tensor parallelism from 8 to 2" in made.summary
    assert "2.00 s a step to 1.00 s" in made.summary
    assert made.model.parameters
    add(made)
    query = HistoryQuery(bottleneck="compute", chip="v5p", devices=8, plan=Plan.parse("model=8"))
    assert search_history(query)[0].record.id == "a--b"


def test_what_else_changed_is_told_and_doubted():
    before = experiment("a", "model=8 remat=full", environment={"jax": "0.9"}, code_version="1")
    after = experiment("b", "data=8 remat=minimal", environment={"jax": "0.10"}, code_version="2")
    made = record_from_experiments(before, after, 2.0, 1.0)
    assert made.other_changes == (
        "rematerialisation from full to minimal", "code from 1 to 2", "jax from 0.9 to 0.10",
    )  # fmt: skip
    alone = record_from_experiments(experiment("a", "model=8"), experiment("b", "data=8"), 2.0, 1.0)
    assert made.confidence < alone.confidence


@pytest.mark.parametrize(
    ("before", "after", "outcome"),
    [(1.0, 2.0, Outcome.SLOWER), (1.0, None, Outcome.OUT_OF_MEMORY), (None, 1.0, Outcome.IMPROVED)],
)
def test_failures_are_records_too(before, after, outcome):
    made = record_from_experiments(experiment("a", "model=8"), experiment("b", "data=8"), before, after)
    assert made.outcome is outcome


def test_steps_of_different_size_are_compared_by_tokens():
    larger = experiment("b", "data=8", workload={"global_batch": 64, "sequence_length": 128})
    made = record_from_experiments(experiment("a", "model=8"), larger, 1.0, 1.6)
    assert made.measure == "tokens per second"
    assert made.speedup == pytest.approx(1.25)
    assert "global batch from 32 to 64" in made.other_changes


def test_too_little_is_said_so():
    with pytest.raises(InsufficientEvidenceError, match="a: has no plan"):
        record_from_experiments(experiment("a", None), experiment("b", "data=8"), 1.0, 2.0)
    with pytest.raises(InsufficientEvidenceError, match="neither run has a step time"):
        record_from_experiments(experiment("a", "model=8"), experiment("b", "data=8"), None, None)


def test_what_cannot_be_compared_is_refused():
    with pytest.raises(BadInputError, match="nothing changed"):
        record_from_experiments(experiment("a", "data=8"), experiment("b", "data=8"), 1.0, 2.0)
    other = experiment("b", "data=16", hardware={"name": "v5p-16", "chip": "v5p", "devices": 16})
    with pytest.raises(BadInputError, match="16 devices"):
        record_from_experiments(experiment("a", "data=8"), other, 1.0, 2.0)
    with pytest.raises(BadInputError, match="not positive"):
        record_from_experiments(experiment("a", "model=8"), experiment("b", "data=8"), 1.0, -2.0)
