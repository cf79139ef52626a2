from asap.calibration.precedents import candidate_records, choose, read_published
from asap.history.record import Outcome

MODEL = {"model": "GPT 1B", "n_layers": 24, "d_model": 2048, "n_heads": 16, "vocab": 51200}


def row(number, step_time, **degrees):
    status = {"status": "ok", "step_time_s": step_time} if step_time else {"status": "oom"}
    return {
        "id": f"lab-{number}", "source_key": "lab", "source": "a table", "url": "https://example.org/table",
        "group": "g", "trust": "A", "model": "GPT 1B", "model_ref": "GPT 1B", "hardware": "H100", "n_chips": 8,
        "n_devices": 8, "seq_len": 2048, "global_batch_seqs": 64, "framework": "Megatron-LM", "precision": "bf16",
        "zero_stage": 0, **status, **degrees,
    }  # fmt: skip


ROWS = [
    row(1, 1.0, tp=1, pp=1, dp=8, micro_batch_seqs=1), row(2, 1.5, tp=2, pp=1, dp=4, micro_batch_seqs=1),
    row(3, 1.02, tp=1, pp=2, dp=4, micro_batch_seqs=1), row(4, None, tp=4, pp=1, dp=2, micro_batch_seqs=1),
    row(5, 0.9, tp=1, pp=1, dp=8, micro_batch_seqs=8),
    {**row(6, 9.0, tp=8, pp=1, dp=1, micro_batch_seqs=1), "trust": "C"},
]  # fmt: skip


def records():
    return candidate_records(read_published(ROWS, {"GPT 1B": MODEL}))


def test_pairs_are_of_one_group_and_told_both_ways():
    found = {one.source.rows: one for one in records()}
    assert all("lab-6" not in rows for rows in found)
    assert {one.outcome for one in found.values()} >= {Outcome.IMPROVED, Outcome.SLOWER}
    for one in found.values():
        if one.speedup:
            assert max(one.speedup, 1 / one.speedup) >= 1.05


def test_a_partner_differs_in_as_little_as_can_be_besides_the_mesh():
    (pair,) = [one for one in records() if "lab-2" in one.source.rows and one.speedup]
    assert set(pair.source.rows) == {"lab-1", "lab-2"}
    assert pair.other_changes == ()


def test_a_run_that_died_of_memory_makes_a_record():
    (pair,) = [one for one in records() if "lab-4" in one.source.rows]
    assert pair.outcome is Outcome.OUT_OF_MEMORY or pair.bottleneck == "memory_capacity"


def test_degrees_become_axes():
    (pair,) = [one for one in records() if "lab-2" in one.source.rows and one.speedup]
    meshes = {(plan.degree("replica"), plan.degree("model")) for plan in (pair.before, pair.after) if plan}
    assert meshes == {(8, 1), (4, 2)}


def test_a_choice_is_bounded_and_repeats_nothing():
    chosen = choose(records(), limit=2, per_source=5)
    assert len(chosen) == 2
    assert len({one.title for one in chosen}) == 2
    assert len(choose(records(), limit=10, per_source=1)) == 1
