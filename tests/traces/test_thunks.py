"""Thunk tables of nsys-jax."""

import gzip
from itertools import product

import duckdb
import pytest

from asap.core.errors import AsapError, BadInputError
from asap.traces.analysis.iterations import device_iterations
from asap.traces.graph.build import build_graph
from asap.traces.recording import load_trace
from asap.traces.trace import OperationKind
from tests.cases import cases

HEADER = "execution,index,hlo_op,cpu_start_us,cpu_end_us,gpu_start_us,gpu_end_us"


def execution(number, gather=300, slow=1.0):
    """A gather while a product runs, and a sum that needs both."""
    at = 10_000 * (number + 1)
    product, begun = 200 * slow, at + 20
    done = max(begun + 2 + product, begun + gather)
    return [
        (number, 0, "fusion.1", at, at + 10, at + 10, begun),
        (number, 1, "all-gather-start.2", at + 10, at + 18, begun, begun + gather),
        (number, 2, "gemm_fusion.3", at + 18, at + 20, begun + 2, begun + 2 + product),
        (number, 3, "all-gather-done.2", at + 20, at + 22, "", ""),
        (number, 4, "loop_add.4", at + 22, at + 30, done + 2, done + 52),
    ]


def table(rows):
    return "\n".join([HEADER, *(",".join(map(str, row)) for row in rows)]) + "\n"


@pytest.fixture
def read(tmp_path):
    def read_text(text, name="rank0_thunks.csv"):
        (tmp_path / name).write_text(text)
        return load_trace([tmp_path])

    return read_text


def test_executions_replay_and_done_waits_for_its_start(read):
    trace = read(table([row for number in range(3) for row in execution(number)]))
    (rank,) = trace.ranks
    graph = build_graph(trace)
    found = device_iterations(graph, rank, graph.nodes[0])
    assert len(found) == 3
    assert all(abs(times.error) < 0.03 for times in found)
    gather = int((rank.operations.kind == OperationKind.COMMUNICATION).argmax())
    waiting = {rank.names[rank.operations.name[row]] for row, awaited in rank.waits.tolist() if awaited == gather}
    assert waiting == {"loop_add.4"}


def test_ranks_are_aligned_and_share_one_transfer_time(tmp_path):
    runs = [[execution(n, 300 + wait, slow) for n in range(3)] for wait, slow in ((0, 1.0), (40, 1.0))]
    for rank, (ahead, rows) in enumerate(zip((0, 123_456), runs, strict=True)):
        moved = [
            (*row[:3], *(value + ahead if value != "" else "" for value in row[3:])) for each in rows for row in each
        ]
        with gzip.open(tmp_path / f"rank{rank}_thunks.csv.gz", "wt") as file:
            file.write(table(moved))
    trace = load_trace([tmp_path])
    assert [rank.rank for rank in trace.ranks] == [0, 1]
    assert sum(each.collectives for each in trace.matched) == 3


@cases("rows, message")
def test_what_is_no_table_is_named(read, rows, message):
    with pytest.raises(AsapError, match=message):
        read("\n".join([HEADER, *rows]))


def test_a_cut_table_is_refused(tmp_path):
    whole = gzip.compress(table(execution(0)).encode())
    (tmp_path / "rank0_thunks.csv.gz").write_bytes(whole[:-12])
    with pytest.raises(BadInputError, match="cannot be read"):
        load_trace([tmp_path])


def test_a_projection_holds_a_device_for_each_thread_that_issues_to_it(tmp_path):
    lines = ["Name;TID;RangeId;ParentId;RangeStack;Orig Start;Orig Duration;Projected Start;Projected Duration"]
    for thread, number in product((7, 8), range(3)):
        module = 1000 * thread + 10 * number
        lines.append(f"TSL:XlaModule:#program_id=4#;{thread};{module};;:{module};0;9;0;9")
        for _, index, name, *times in execution(number):
            issued, returned, begun, ended = (int(1000 * time) if time else 0 for time in times)
            stack = f"{module + 1 + index};{module};:{module}:{module + 1 + index}"
            ran = f"{issued};{returned - issued};{begun};{ended - begun}"
            lines += [f"TSL:Thunk:#name=f[a=(1,)],hlo_op={name}#;{thread};{stack};{ran}"] if ended else []
    (tmp_path / "nvtx_gpu_proj_trace").mkdir()
    (tmp_path / "ranges.csv").write_text("\n".join(lines))
    duckdb.sql(f"copy (from '{tmp_path}/ranges.csv') to '{tmp_path}/nvtx_gpu_proj_trace/trace.parquet'")
    ranks = load_trace([tmp_path]).ranks
    assert [[step.label for step in rank.steps] for rank in ranks] == [["0", "1", "2"]] * 2
    communicates = ranks[1].operations.kind == OperationKind.COMMUNICATION
    assert {ranks[1].names[name] for name in ranks[1].operations.name[communicates]} == {"all-gather-start.2"}
    assert {ranks[1].lanes[lane] for lane in ranks[1].operations.lane[communicates]} == {"communication stream"}
