import gzip
import json
from pathlib import Path

import pytest

from asap.calibration.dataset.rows import read_compiled
from asap.calibration.fit.memory_overheads import score_hbm
from asap.core.errors import ConfigError
from asap.plans import Plan
from asap.prediction.step_model.tpu_memory import BUNDLED, FittedBuffers
from compiled_tables import KINDS, SEED, draw

FOLDER = Path(__file__).parent.parent / "data" / "compiled"
TABLE, IRONWOOD = FOLDER / "programs.jsonl.gz", FOLDER / "ironwood.jsonl.gz"


@pytest.fixture(scope="module")
def programs():
    return read_compiled(TABLE)


def test_the_bundled_numbers_reach_the_scores_on_record(programs):
    recorded = FittedBuffers.model_validate_json(BUNDLED.read_text())
    kept_out = [program for program in programs if program.kept_out]
    assert score_hbm(kept_out) == recorded.kept_out
    assert score_hbm([program for program in programs if not program.kept_out]) == recorded.fitted
    assert (recorded.kept_out.median_error or 1.0) < 0.06


def test_a_chip_that_no_fit_saw_holds_about_as_much():
    """These were compiled with least effort, which takes less."""
    assert (score_hbm(read_compiled(IRONWOOD)).median_error or 1.0) < 0.08


def test_models_are_kept_out_whole_by_their_names(programs):
    kept_out = {program.model_name for program in programs if program.kept_out}
    assert {"llama2-13b", "mixtral-8x7b"} <= kept_out
    assert not kept_out & {program.model_name for program in programs if not program.kept_out}


@pytest.mark.parametrize("kind", KINDS)
def test_programs_are_those_that_the_rule_draws(kind):
    with gzip.open(IRONWOOD if kind == "ironwood" else TABLE, "rt") as table:
        rows = [row for row in map(json.loads, table) if row["kind"] == kind]
    assert len(rows) > 3
    for row in rows[:3]:
        drawn = draw(kind, SEED, row["index"])
        assert (drawn.model.name, drawn.hardware_name, drawn.plan, drawn.workload.global_batch) == (
            row["model"], row["hardware"], Plan.parse(row["plan"]), row["global_batch"],
        )  # fmt: skip
        assert drawn.plan.degree("stage") > 1 or kind != "pipeline"


def test_a_row_that_lacks_what_it_needs_says_so(tmp_path):
    table = tmp_path / "table.jsonl"
    table.write_text(json.dumps({"model": "llama3-8b", "needed_bytes": 1e9}) + "\n")
    with pytest.raises(ConfigError, match="lacks 'global_batch'"):
        read_compiled(table)
