"""Settings that published runs leave out, inferred from what fits into HBM."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace

from asap.calibration.dataset.runs import PublishedRun
from asap.plans.remat import Policy
from asap.prediction.step_model.recomputation import REMAT_LADDER, candidate_microbatches, infer_remat


def with_inferred_remat(runs: Sequence[PublishedRun]) -> list[PublishedRun]:
    """The runs with a rematerialisation policy and microbatches, inferred where they are not published.

    Runs of a group share their settings: all get the policy that most of them need; in a tie, the one that recomputes
    less.
    """
    chosen = [
        infer_remat(
            run.plan, run.architecture, run.workload, run.hardware, candidate_microbatches(run.plan, run.workload)
        )
        for run in runs
    ]
    votes: dict[str, Counter[Policy | None]] = defaultdict(Counter)
    for run, plan in zip(runs, chosen, strict=True):
        votes[run.group][plan.remat] += run.plan.remat is None
    found = []
    for run, plan in zip(runs, chosen, strict=True):
        policy = run.plan.remat or max(REMAT_LADDER, key=lambda candidate: votes[run.group][candidate])
        found.append(
            replace(run, plan=plan.model_copy(update={"remat": policy}), remat_inferred=run.plan.remat is None)
        )
    return found
