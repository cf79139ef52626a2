from dataclasses import replace

import numpy as np
import pytest

from asap.calibration.backtest.cells import cell_table, cells
from asap.calibration.backtest.predicted_table import PredictedTable
from asap.calibration.dataset.runs import PublishedRun, read_run
from asap.calibration.dataset.sources import duplicates
from asap.calibration.fit.intervals import fit_step_interval
from asap.prediction.uncertainty.calibration import load_calibration
from asap.prediction.uncertainty.step_interval import DENSE, MIXTURE, cell_of

MODEL = {"model": "m", "n_layers": 32, "d_model": 4096, "d_ff": 14336, "n_heads": 32, "n_kv_heads": 8, "head_dim": 128,
         "vocab": 32000, "activation": "swiglu"}  # fmt: skip
ROW = {"id": "r", "source_key": "s", "model": "m", "hardware": "H100", "n_chips": 64, "status": "ok", "trust": "A",
       "seq_len": 4096, "global_batch_seqs": 512, "tp": 4, "pp": 2, "micro_batch_seqs": 2, "step_time_s": 4.0,
       "framework": "Megatron-LM", "remat": "full", "precision": "bf16"}  # fmt: skip


def run(name: str, source: str, **changes: object) -> PublishedRun:
    row = {key: value for key, value in (ROW | changes).items() if value is not None}
    return replace(read_run(row, {"m": MODEL}), id=name, source=source)


def test_a_run_of_two_sources_is_found_by_what_it_is():
    same, other = run("a", "one"), run("b", "two", step_time_s=4.001)
    assert duplicates([same, other]) == [("a", "b")]
    apart = (run("c", "two", step_time_s=4.1), run("d", "two", tp=8), run("e", "two", global_batch_seqs=256))
    assert duplicates([same, *apart]) == []
    assert duplicates([same, run("f", "one")]) == []


def test_cells_say_how_few_sources_they_have_and_own_runs_bring_them_nearer():
    runs = [run(f"{source}-{n}", source, step_time_s=6.0 + n / 50) for source in ("one", "two") for n in range(8)]
    table = PredictedTable.of(runs, [load_calibration().full] * len(runs))
    found = {cell.name: cell for cell in cells(table)}
    assert set(found) == {"dense on nemo, h100", "all dense"}
    cell = found["all dense"]
    assert cell.none.error > cell.one.error > cell.three.error
    assert cell.none.half_width > cell.three.half_width
    assert cell_table(cells(table)).count("2 (few)") == 2


def doubts(quiet: int, loud: int) -> dict[str, np.ndarray]:
    is_loud = np.arange(quiet + loud) >= quiet
    names = ("any", "distance", "chip", "vendor", "framework", "code", "precision", "communication", "network",
             "launches", "experts", "unstated")  # fmt: skip
    switches = {cell_of("maxtext", DENSE): ~is_loud, cell_of("fsdp", MIXTURE): is_loud}
    empty = dict.fromkeys(names, np.zeros(quiet + loud)) | {"any": np.ones(quiet + loud)}
    return empty | {name: value.astype(float) for name, value in switches.items()}


@pytest.mark.parametrize(("sources", "least"), [(2, 1.2), (20, 3.0)])
def test_a_cell_that_scatters_more_is_wider_the_more_sources_say_so(sources, least):
    random, each = np.random.default_rng(0), 20
    count = sources * each
    residuals = np.concatenate([random.laplace(0, 0.05, 40 * each), random.laplace(0, 0.3, count)])
    names = [f"q{n // each}" for n in range(40 * each)] + [f"l{n // each}" for n in range(count)]
    of = doubts(40 * each, count)
    widths = fit_step_interval(residuals, of, names).at_each(of)
    assert widths[-1] / widths[0] > least
    assert widths[-1] / widths[0] < 7
