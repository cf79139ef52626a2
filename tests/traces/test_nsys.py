"""Nsight Systems' export to SQLite, made as ``nsys export`` makes it."""

import sqlite3
import struct

import pytest

from asap.core.errors import BadInputError, InsufficientEvidenceError
from asap.traces.recording import load_trace, read_recording
from asap.traces.trace import OperationKind

PROCESS = 77 << 24
NAMES = {1: "sm90_xmma_gemm_bf16", 2: "ncclDevKernel_AllReduce_Sum_bf16_RING_LL", 3: "cudaLaunchKernel", 4: "step 1"}


def export(path, devices=(0,), text="step 1", said=lambda communicator: (None, None)):
    """Two products and a collective on each device, in one marked step; times in microseconds. Pairs of devices share
    a communicator, of which NCCL says what ``said`` makes of it."""
    path.parent.mkdir(exist_ok=True)
    with sqlite3.connect(path) as database:
        database.executescript("""
            CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);
            CREATE TABLE TARGET_INFO_GPU (id INT, name TEXT);
            CREATE TABLE NVTX_EVENTS
                (start INT, end INT, text TEXT, textId INT, globalTid INT, jsonText TEXT, binaryData BLOB);
            CREATE TABLE NVTX_PAYLOAD_SCHEMA_ENTRIES (schemaId INT, idx INT, name TEXT, offset INT);
            INSERT INTO NVTX_PAYLOAD_SCHEMA_ENTRIES VALUES (7, 0, 'NCCL communicator ID', NULL);
            INSERT INTO NVTX_PAYLOAD_SCHEMA_ENTRIES VALUES (7, 1, 'Message size [bytes]', 8);
            CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start, end, globalTid, correlationId, nameId);
            CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL
                (start, end, deviceId, streamId, correlationId, globalPid, demangledName);
            CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY(start, end, deviceId, streamId, correlationId, globalPid, copyKind)
            """)
        database.executemany("INSERT INTO StringIds VALUES (?, ?)", NAMES.items())
        for device in devices:
            database.execute("INSERT INTO TARGET_INFO_GPU VALUES (?, 'NVIDIA H100 80GB HBM3')", (device,))
            process = PROCESS + (device << 24)
            call = (19_000, 29_000, "ncclAllReduce", None, process + 1, *said(2**63 + 5 + device // 2))
            for row in ((0, 400_000, text, None, process + 1, None, None), call):
                database.execute("INSERT INTO NVTX_EVENTS VALUES (?, ?, ?, ?, ?, ?, ?)", row)
            for number, (start, end, name) in enumerate(((20, 120, 1), (130, 230, 1), (230, 380, 2))):
                launched = (10_000 * number, 10_000 * number + 5_000, process + 1, number, 3)
                database.execute("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?, ?, ?, ?, ?)", launched)
                row = (1000 * start, 1000 * end, device, 7, number, process, name)
                database.execute("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?, ?, ?, ?, ?, ?, ?)", row)
            copy = (385_000, 390_000, device, 7, 9, process, 2)
            database.execute("INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (?, ?, ?, ?, ?, ?, ?)", copy)
    return path


def test_each_process_and_device_is_a_rank(tmp_path):
    ranks = load_trace([export(tmp_path / "run.sqlite", (0, 1))]).ranks
    assert [rank.rank for rank in ranks] == [0, 1]
    for rank in ranks:
        kinds = [OperationKind(kind) for kind in rank.operations.kind.tolist()]
        assert kinds == [OperationKind.COMPUTE, OperationKind.COMPUTE, OperationKind.COMMUNICATION, OperationKind.COPY]
        assert [step.label for step in rank.steps] == ["1"]
        assert len(rank.calls) == 3
        assert rank.names[rank.operations.name[3]] == "Memcpy DtoH"


@pytest.mark.parametrize(
    "said",
    [lambda it: (f'{{"NCCL communicator ID": "{it:,}", "Message size [bytes]": 4096}}', None),
     lambda it: (None, struct.pack("<6Q", 1, 7, 16, 32, it, 4096))],
)  # fmt: skip
def test_collectives_join_the_ranks_of_their_communicator(tmp_path, said):
    """As JSON of older exports and as bytes of newer ones, in one file and in one for each process."""
    export(tmp_path / "run.sqlite", range(4), said=said)
    for device in range(4):
        export(tmp_path / "several" / f"rank{10 * device}.sqlite", (device,), said=said)
    for trace in (load_trace([tmp_path / "run.sqlite"]), load_trace([tmp_path / "several"])):
        assert sorted(each.members.tolist() for each in trace.matched) == [[0, 1], [2, 3]]
        assert {call.size_bytes for rank in trace.ranks for call in rank.collectives} == {4096}
        assert not any("communicator" in note for note in trace.notes)


@pytest.mark.parametrize("deep", [1, 3])
def test_kernels_of_a_group_are_of_the_communicators_that_it_named(tmp_path, deep):
    """Two all-reduces are asked for one by one, and launched as the group ends."""
    said = '{"NCCL communicator ID": %d, "Message size [bytes]": 64}'
    events = [(10_000 + n, "ncclGroupStart", None) for n in range(deep)]
    events += [(15_000 + n, "ncclAllReduce", said % n) for n in (8, 9)]
    events += [(18_000 + n, "ncclGroupEnd", None) for n in range(deep)]
    with sqlite3.connect(export(file := tmp_path / "run.sqlite")) as database:
        database.execute("DELETE FROM NVTX_EVENTS WHERE text LIKE 'nccl%'")
        insert = (
            f"INSERT INTO NVTX_EVENTS (end, globalTid, start, text, jsonText) VALUES (30000, {PROCESS + 1}, ?, ?, ?)"
        )
        database.executemany(insert, events)
        database.execute(f"INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (26000, 27000, {PROCESS + 1}, 12, 3)")
        database.execute(f"INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (240000, 290000, 0, 8, 12, {PROCESS}, 2)")
    (rank,) = load_trace([file]).ranks
    which = rank.operations.collective[rank.operations.kind == OperationKind.COMMUNICATION].tolist()
    assert [rank.collectives[one].group.name for one in which] == ["8", "9"]


def test_it_is_a_profile_like_others(tmp_path):
    profile = read_recording(export(tmp_path / "run.sqlite"))
    assert profile.device_type == "NVIDIA H100 80GB HBM3"
    assert profile.kpis.step_time_s == pytest.approx(400e-6)
    assert profile.kpis.communication == pytest.approx(150 / 400, abs=0.01)
    assert profile.framework is None


def test_without_marks_the_time_between_the_first_and_the_last_operation_counts(tmp_path):
    profile = read_recording(export(tmp_path / "run.sqlite", text="forward"))
    assert profile.extent == "window"
    assert profile.kpis.communication == pytest.approx(150 / 370, abs=0.01)


def test_what_cannot_be_read_is_one_error(tmp_path):
    damaged, empty, report = (tmp_path / name for name in ("damaged.sqlite", "empty.sqlite", "run.nsys-rep"))
    damaged.write_bytes(b"SQLite format 3\0 and no more")
    report.write_bytes(b"report")
    with sqlite3.connect(empty) as database:
        database.execute("CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT)")
    with pytest.raises(BadInputError, match="cannot be read"):
        load_trace([damaged])
    with pytest.raises(InsufficientEvidenceError, match="no GPU activity"):
        load_trace([empty])
    with pytest.raises(BadInputError) as refused:
        read_recording(report)
    assert "nsys export --type sqlite" in refused.value.hint
