from dataclasses import replace

from asap.calibration.backtest.cells import cell_table, cells
from asap.calibration.backtest.predicted_table import PredictedTable
from asap.calibration.dataset.runs import PublishedRun, read_run
from asap.calibration.dataset.sources import duplicates
from asap.prediction.uncertainty.calibration import load_calibration

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
    assert cell.one is not None
    assert cell.three is not None
    assert cell.none.error > cell.one.error > cell.three.error
    assert cell.none.half_width > cell.three.half_width
    assert cell_table(cells(table)).count("2 (few)") == 2
