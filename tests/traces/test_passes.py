"""Tables of forward and backward passes, against a pipeline of which everything is known."""

import duckdb
import pytest

from asap.core.errors import BadInputError
from asap.traces.graph.build import build_graph
from asap.traces.recording import load_trace
from asap.traces.summary import describe, report_replay
from asap.traces.what_if.change import parse_change
from asap.traces.what_if.predict import predict_change

STAGES, REPLICAS, MICROBATCHES, STEPS = 3, 2, 5, (4, 5, 9)
FORWARD, BACKWARD, TRANSFER, REDUCE, UPDATE = 1.0, 2.0, 0.05, 0.3, 0.2


def order(stage):
    """One-forward-one-backward (Narayanan et al. 2021)."""
    warm = min(STAGES - stage - 1, MICROBATCHES)
    passes = [("forward", number) for number in range(warm)]
    for number in range(MICROBATCHES - warm):
        passes += [("forward", warm + number), ("backward", number)]
    return passes + [("backward", number) for number in range(MICROBATCHES - warm, MICROBATCHES)]


def pipeline(slow):
    """Rows of one replica until its last backward pass: stage, kind, number, start, end."""
    left = {stage: order(stage) for stage in range(STAGES)}
    free, sending, done, rows = dict.fromkeys(left, 0.0), {}, {}, []
    while any(left.values()):
        for stage, passes in left.items():
            if not passes:
                continue
            kind, number = passes[0]
            ahead = -1 if kind == "forward" else 1
            source = kind, number, stage + ahead
            if 0 <= stage + ahead < STAGES and source not in done:
                continue
            ready = free[stage]
            if source in done:
                sent = max(done[source], sending.get((kind, stage), 0.0))
                ready = sending[kind, stage] = max(sent, free[stage]) + TRANSFER
                rows.append((stage, f"{kind}-recv", number, free[stage], ready))
                rows.append((stage + ahead, f"{kind}-send", number, sent, ready))
            end = ready + slow.get(stage, 1.0) * (FORWARD if kind == "forward" else BACKWARD)
            rows.append((stage, f"{kind}-compute", number, ready, end))
            done[kind, number, stage] = free[stage] = end
            passes.pop(0)
    return rows, free


def table(slow):
    """Rows of all workers in all steps, and the time of a step."""
    replicas = [pipeline({stage: by for (one, stage), by in slow.items() if one == each}) for each in range(REPLICAS)]
    rows, length = [], 0.0
    for replica, (passes, free) in enumerate(replicas):
        for stage in range(STAGES):
            begun = max(each[stage] for _, each in replicas)
            clip = max(max(each.values()) for _, each in replicas) + REDUCE
            after = [("grads-reduce-scatter", free[stage], begun + REDUCE)]
            after += [("optimizer-clip-main-grad", begun + REDUCE, clip), ("optimizer", clip, clip + UPDATE)]
            found = [each[1:] for each in passes if each[0] == stage] + [(kind, 0, *span) for kind, *span in after]
            rows += [(replica, stage, replica + REPLICAS * stage, *each) for each in found]
            length = max(length, clip + UPDATE)
    return [(step, *row) for step in STEPS for row in rows], length


def write(path, rows, columns="step,dp_rank,stage,rank,optype,seq_id,start_ts,end,gmc,mc,mb_id"):
    with duckdb.connect() as database:
        kinds = dict.fromkeys(("optype",), "varchar") | dict.fromkeys(("start_ts", "end"), "double")
        said = ", ".join(f'"{name}" {kinds.get(name, "bigint")}' for name in columns.split(","))
        database.execute(f"create table passes ({said})")
        filled = [(*row, row[2], 0, -1)[: len(columns.split(","))] for row in rows]
        database.executemany(f"insert into passes values ({', '.join('?' * len(columns.split(',')))})", filled)
        database.execute(f"copy (select *, \"end\" - start_ts as duration from passes) to '{path}' (format parquet)")
    return path


@pytest.fixture
def graph(tmp_path):
    return lambda slow: build_graph(load_trace([write(tmp_path / "job.parquet", table(slow)[0])]))


@pytest.mark.parametrize("slow", [{}, {(1, 2): 1.5}, {(0, 0): 2.0, (1, 1): 1.2}], ids=str)
def test_a_job_replays_and_its_ideal_step_is_that_of_even_work(graph, slow):
    found = graph(slow)
    report = report_replay(found)
    assert report.step_time_s.measured_s == pytest.approx(table(slow)[1])
    assert report.step_time_s.replayed_s == pytest.approx(table(slow)[1], rel=1e-3)
    ideal = predict_change(found, [parse_change("even:compute"), parse_change("even:communication")])
    mean = 1 + sum(by - 1 for by in slow.values()) / (STAGES * REPLICAS)
    even = {(replica, stage): mean for replica in range(REPLICAS) for stage in range(STAGES)}
    assert ideal.value == pytest.approx(table(even)[1], rel=0.01)
    assert min(rank.breakdown.bubble_s or 0.0 for rank in report.ranks) > 0


@pytest.mark.parametrize("place", [(0, 0), (1, 1), (0, 2)])
def test_the_slow_worker_is_named(graph, place):
    (slow,) = report_replay(graph({place: 1.6})).slow_ranks[:1]
    assert slow.rank == place[0] + REPLICAS * place[1]
    assert slow.step_time_s == pytest.approx(table({})[1], rel=0.01)


def test_steps_that_were_recorded_apart_are_told_once(graph):
    notes = describe(graph({})).notes
    assert len(notes) == len(set(notes))
    assert sum("no step between 5 and 9" in note for note in notes) == 1


def test_what_cannot_be_read_is_refused(tmp_path):
    rows = table({})[0]
    without = write(tmp_path / "without.parquet", rows, "step,dp_rank,stage,rank,optype,seq_id,start_ts,end")
    with pytest.raises(BadInputError, match="lacks the columns gmc"):
        load_trace([without])
    unknown = write(tmp_path / "unknown.parquet", [(*row[:4], "expert-dispatch", *row[5:]) for row in rows])
    with pytest.raises(BadInputError, match="unknown kind: expert-dispatch"):
        load_trace([unknown])
    (tmp_path / "text.parquet").write_text("not a table")
    with pytest.raises(BadInputError, match="cannot be read"):
        load_trace([tmp_path / "text.parquet"])
