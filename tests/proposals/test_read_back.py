"""What a proposal is said to bring is what its settings bring: read back, they are predicted alike."""

from pathlib import Path
from typing import Any

import pytest

from asap.experiments import Experiment, read_configuration, refer_to_hardware
from asap.prediction.predict_study import expect
from asap.proposals.ranked_candidates import rank_candidates
from asap.stacks.launchers import spec_of, stack_of
from asap.stacks.writing import to_settings
from asap.study.study import Study, study_of
from tests.experiments.golden.readings import cases, laid_out

_EACH, _NEARLY = 8, 0.02


def _is_whole(case: dict[str, Any]) -> bool:
    """Whether a case says all that a proposal needs, and its stack takes settings as key=value."""
    reads = case.get("reads", {})
    model, work, stack = (reads.get("model", {}), reads.get("workload", {}), case["case"].partition(":")[0])
    said = {"global_batch", "sequence_length"} <= work.keys() and {"layers", "d_ff", "vocab"} <= model.keys()
    elsewhere = work.get("framework") in ("MaxText", "DeepSpeed", "Megatron-Bridge")
    settled = {"remat", "microbatches"} <= {term.partition("=")[0] for term in reads.get("plan", "").split()}
    return said and settled and not elsewhere and "deepspeed" not in stack


_CASES = [case for number, case in enumerate(filter(_is_whole, cases())) if number % _EACH == 0]
_CASES += [
    case
    for case in cases()
    if case["case"].startswith(("axolotl", "swift: replicas", "adapters: a rank beside")) and _is_whole(case)
]


@pytest.mark.slow
@pytest.mark.parametrize("case", _CASES, ids=lambda case: case["case"])
def test_a_proposal_is_predicted_as_what_its_settings_say(case: dict[str, Any], tmp_path: Path) -> None:
    path, known = laid_out(case, tmp_path), Experiment.model_validate(case["experiment"])
    run = _study(path, case["overrides"], known)
    work, now = run.experiment.workload, run.experiment.hyperparameters
    table = spec_of(stack_of(work.framework), now)
    assert table is not None
    assert run.experiment.model is not None
    for one in rank_candidates(run).chosen:
        changed = to_settings(
            table, one.plan, now, global_batch=work.global_batch, sequence=work.sequence_length,
            layers=run.experiment.model.layers,
        )  # fmt: skip
        said = [f"{key.removeprefix('TrainingArguments.')}={value}" for key, value in changed.items()]
        again = _study(path, [*case["overrides"], *said], known)
        assert again.plan is not None
        (read,) = expect(again, [again.plan])
        assert one.prediction.step_time
        assert one.prediction.memory
        assert read.step_time
        assert read.memory
        assert read.step_time.value == pytest.approx(one.prediction.step_time.value, rel=_NEARLY)
        assert read.memory.total.value == pytest.approx(one.prediction.memory.total.value, rel=_NEARLY)


def _study(path: Path | None, overrides: list[str], known: Experiment) -> Study:
    run = read_configuration(path, overrides, known)
    size = run.hardware.devices or (run.plan.devices if run.plan else 16)
    hardware = run.hardware if run.hardware.chip else refer_to_hardware(f"h100-{size}")[0]
    return study_of(read_configuration(path, overrides, known.model_copy(update={"hardware": hardware})))
