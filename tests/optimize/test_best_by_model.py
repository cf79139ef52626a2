from asap.experiments import ExperimentStore
from asap.optimize.by_model import optimize_by_model, worse_bets
from asap.proposals.propose import propose
from asap.proposals.selection.ranked_candidates import rank_candidates
from asap.study.open_study import open_study


def test_a_row_that_is_faster_than_the_best_says_why_it_is_not_the_best(tmp_path):
    study = open_study("llama-8b-tensor-16", ExperimentStore(tmp_path))
    best, *others = propose(rank_candidates(study, {}), lambda study, plan: ()).proposals
    (line,) = worse_bets([*others, best], first_number=2)
    assert line.startswith(f"{len(others) + 2} is faster by the model, but the worse bet: P(fits) ")
    assert list(worse_bets([best, *others], first_number=2)) == []
    assert not any("worse bet" in line for line in optimize_by_model(study).learnt)
