"""Chakra execution traces (MLCommons), as ASTRA-sim and others take them: ``NAME.RANK.et``, a file a rank.

A file is a sequence of messages, each with its length before it: metadata, then nodes. The fields are those of
https://github.com/mlcommons/chakra/blob/main/schema/protobuf/et_def.proto; attributes are named as its converter of
PyTorch traces names them.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from asap.core.errors import BadInputError, InsufficientEvidenceError
from asap.core.text import plain
from asap.traces.collectives import TRANSFER
from asap.traces.graph.graph import Cause, Graph, RankNodes
from asap.traces.trace import (
    UNSAID,
    CollectiveCall,
    Events,
    Group,
    Integers,
    Numbering,
    OperationKind,
    RankTrace,
    collective_kind,
)

US = 1000
VERSION = "0.0.4"
_RANK = re.compile(r"\.(\d+)\.et$")
_LOAD, _STORE, _COMPUTE, _SEND, _RECEIVE, _COLLECTIVE = range(2, 8)
_COMMUNICATES = (_SEND, _RECEIVE, _COLLECTIVE)
_KINDS = (
    "all-reduce", "reduce", "all-gather", "gather", "scatter", "collective-broadcast", "all-to-all", "reduce-scatter",
)  # fmt: skip
"""By their number in ``CollectiveCommType``."""

_Groups = Numbering[tuple[int, ...]]

_FIELDS: Mapping[str, Sequence[tuple[str, int, str]]] = {
    "Attribute": (
        ("name", 1, "string"), ("double_val", 3, "double"), ("float_val", 5, "float"), ("int32_val", 7, "int32"),
        ("int64_val", 9, "int64"), ("uint32_val", 11, "uint32"), ("uint64_val", 13, "uint64"), ("bool_val", 27, "bool"),
        ("string_val", 29, "string"),
    ),
    "Metadata": (("version", 1, "string"),),
    "Node": (
        ("id", 1, "uint64"), ("name", 2, "string"), ("type", 3, "int32"), ("ctrl_deps", 4, "uint64*"),
        ("data_deps", 5, "uint64*"), ("start_time_micros", 6, "uint64"), ("duration_micros", 7, "uint64"),
        ("attr", 10, "Attribute*"),
    ),
}  # fmt: skip


@cache
def _messages() -> Mapping[str, Any]:
    """A class for each message. Fields that are not listed are skipped on reading."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    field = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="asap/chakra.proto", package="asap.chakra", syntax="proto3")
    for name, fields in _FIELDS.items():
        message = file.message_type.add(name=name)
        if name == "Attribute":
            message.oneof_decl.add(name="value")  # so that a zero is written
        for label, number, sort in fields:
            bare = sort.removesuffix("*")
            added = message.field.add(name=label, number=number)
            if label.endswith("_val"):
                added.oneof_index = 0
            added.label = field.LABEL_REPEATED if sort.endswith("*") else field.LABEL_OPTIONAL
            if bare in _FIELDS:
                added.type, added.type_name = field.TYPE_MESSAGE, f".asap.chakra.{bare}"
            else:
                added.type = getattr(field, f"TYPE_{bare.upper()}")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"asap.chakra.{name}")) for name in _FIELDS
    }


def write_chakra(graph: Graph, folder: Path) -> list[Path]:
    """A file a rank, and the ranks of each group in ``groups``, where ASTRA-sim looks them up by number. Calls of the
    host are nodes with what passed before them; pauses of a device are not kept.

    Raises:
        BadInputError: the folder cannot be written.
    """
    from google.protobuf.proto import serialize_length_prefixed

    files, groups = [], _Groups()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for rank, nodes in zip(graph.trace.ranks, graph.nodes, strict=True):
            stream = BytesIO()
            serialize_length_prefixed(_messages()["Metadata"](version=VERSION), stream)
            for node in _nodes(graph, rank, nodes, groups):
                serialize_length_prefixed(node, stream)
            files.append(folder / f"trace.{rank.rank}.et")
            files[-1].write_bytes(stream.getvalue())
        (folder / "groups").write_text(json.dumps(dict(enumerate(groups, start=1))), encoding="utf-8")
    except OSError as error:
        raise BadInputError(f"cannot be written: {error.strerror}", where=plain(folder)) from error
    return files


def _nodes(graph: Graph, rank: RankTrace, nodes: RankNodes, groups: _Groups) -> Iterator[Any]:
    """Calls come first, then operations, each numbered by its row."""
    message, calls = _messages()["Node"], len(rank.calls)
    control, data = _dependencies(graph, rank, nodes)
    for table, first in ((rank.calls, 0), (rank.operations, calls)):
        names, lanes = table.name.tolist(), table.lane.tolist()
        for row, (start, end) in enumerate(zip(table.start.tolist(), table.end.tolist(), strict=True)):
            number = first + row
            node = message(
                id=number, name=rank.names[names[row]], type=_COMPUTE, start_time_micros=start // US,
                duration_micros=-(-end // US) - start // US, ctrl_deps=control.get(number, ()),
                data_deps=data.get(number, ()),
            )  # fmt: skip
            _describe(node, rank, row, lanes[row], groups if first > 0 or not calls else None)
            yield node


def _describe(node: Any, rank: RankTrace, row: int, lane: int, groups: _Groups | None) -> None:
    on_host = groups is None
    attributes: dict[str, bool | int | str] = {"is_cpu_op": on_host, "tid" if on_host else "stream": lane}
    kind = None if on_host else OperationKind(int(rank.operations.kind[row]))
    if groups is not None and kind is OperationKind.COMMUNICATION:
        said = int(rank.operations.collective[row])
        call = rank.collectives[said] if said >= 0 else UNSAID
        sort = collective_kind(node.name) or ""
        ranks = call.group.ranks
        attributes |= {"comm_size": call.size_bytes, "pg_desc": call.group.description or call.group.name}
        attributes |= {"pg_name": str(1 + groups[ranks]) if ranks else "", "pg_ranks": ",".join(map(str, ranks))}
        if sort == TRANSFER and call.pair is not None:
            attributes |= {"comm_src": call.pair[0], "comm_dst": call.pair[1], "comm_tag": 0}
            node.type = _SEND if call.sender == rank.rank else _RECEIVE
        else:
            node.type = _COLLECTIVE
            attributes["comm_type"] = _KINDS.index(sort if sort in _KINDS else "all-to-all")
    elif kind is not None:
        attributes["does"] = kind.name
    for name, value in attributes.items():
        key = "bool_val" if isinstance(value, bool) else "string_val" if isinstance(value, str) else "int64_val"
        node.attr.add(**{"name": name, key: value})


def _dependencies(graph: Graph, rank: RankTrace, nodes: RankNodes) -> tuple[dict[int, list[int]], dict[int, list[int]]]:
    """Of each node of a rank, those that it waits for: in the order of its thread or by its launch; for data."""
    calls = len(rank.calls)
    owner = np.full(len(graph.measured), -1)
    for row, *columns in (0, nodes.call_start, nodes.call_end), (calls, nodes.operation_start, nodes.operation_end):
        for column in columns:
            owner[column] = row + np.arange(len(column))
    edges = graph.edges
    source, target = owner[edges.source], owner[edges.target]
    found: list[dict[int, list[int]]] = []
    for causes in ((Cause.HOST, Cause.LAUNCH), (Cause.STREAM, Cause.WAIT, Cause.BLOCKED, Cause.INFERRED)):
        rows = np.isin(edges.cause, causes) & (source >= 0) & (target >= 0) & (source != target)
        waits: dict[int, list[int]] = {}
        for one, other in np.unique(np.stack([target[rows], source[rows]], axis=1), axis=0).tolist():
            waits.setdefault(one, []).append(other)
        found.append(waits)
    return found[0], found[1]


class _Row(NamedTuple):
    number: int
    node: Any
    attributes: dict[str, Any]


def read_chakra(path: Path) -> RankTrace:
    """Read the trace of one rank; times are nanoseconds on its own clock.

    Raises:
        BadInputError: the file is cut off or damaged, or its name has no rank.
        InsufficientEvidenceError: nothing ran on a device in it, or when is not said.
    """
    found = _RANK.search(path.name)
    if found is None:
        raise BadInputError("has no rank in its name", where=plain(path), hint="name it NAME.RANK.et")
    rows = [_Row(node.id, node, _attributes(node)) for node in _read(path)]
    device = [row for row in rows if not row.attributes.get("is_cpu_op", False)]
    if not device:
        raise InsufficientEvidenceError("holds no operation of a device", where=plain(path))
    if not any(row.node.duration_micros for row in device) or not any(row.node.start_time_micros for row in rows):
        hint = "collect it after a run: what is written before one holds no times"
        raise InsufficientEvidenceError("does not say when operations ran and how long", where=plain(path), hint=hint)
    return _trace(int(found.group(1)), device, [row for row in rows if row.attributes.get("is_cpu_op", False)])


def _read(path: Path) -> Iterator[Any]:
    from google.protobuf.message import DecodeError
    from google.protobuf.proto import parse_length_prefixed

    try:
        stream = BytesIO(path.read_bytes())
        message = parse_length_prefixed(_messages()["Metadata"], stream)
        while message is not None:
            message = parse_length_prefixed(_messages()["Node"], stream)
            if message is not None:
                yield message
    except (OSError, DecodeError, ValueError) as error:
        raise BadInputError(f"cannot be read: {plain(error, 120)}", where=plain(path)) from error


def _attributes(node: Any) -> dict[str, Any]:
    """Value of each attribute, of whichever type it is."""
    return {
        each.name: next((value for field, value in each.ListFields() if field.name != "name"), 0) for each in node.attr
    }


def _trace(rank: int, device: Sequence[_Row], host: Sequence[_Row]) -> RankTrace:
    names, lanes, calls_said = Numbering[str](), Numbering[str](), Numbering[CollectiveCall]()
    device, host = (sorted(rows, key=_when) for rows in (device, host))
    launched = {row.number for row in host}
    operations, place = [], {row.number: number for number, row in enumerate(device)}
    waits = []
    for number, row in enumerate(device):
        communicates = row.node.type in _COMMUNICATES
        stated = _DOES.get(str(row.attributes.get("does")), _OF_MEMORY.get(row.node.type, OperationKind.COMPUTE))
        kind = OperationKind.COMMUNICATION if communicates else stated
        depends = [*row.node.ctrl_deps, *row.node.data_deps]
        launch = next((each for each in depends if each in launched), -1)
        said = calls_said[_call(row)] if communicates else -1
        lane = lanes[f"stream {row.attributes.get('stream', 0)}"]
        operations.append((names[_name(row)], lane, *_when(row), launch, kind, said))
        waits += [(number, place[each]) for each in depends if each in place]
    calls = [
        (names[row.node.name], lanes[f"thread {row.attributes.get('tid', 0)}"], *_when(row), row.number, 0)
        for row in host
    ]
    return RankTrace(
        rank=rank, names=list(names), lanes=list(lanes), calls=Events.of(calls), operations=Events.of(operations),
        spans=Events.of([]), steps=[], caller=np.arange(len(lanes)), collectives=list(calls_said),
        waits=_other_lanes(waits, operations), notes=("Chakra marks no steps: the whole trace is taken for one step",),
    )  # fmt: skip


_OF_MEMORY = {_LOAD: OperationKind.COPY, _STORE: OperationKind.MEMSET}
_DOES = {kind.name: kind for kind in OperationKind}  # an attribute: loads and stores are of memory beside the device


def _other_lanes(waits: Sequence[tuple[int, int]], operations: Sequence[tuple[int, ...]]) -> Integers:
    """What waits for an operation of its own stream does so by the order of the stream."""
    apart = [pair for pair in waits if operations[pair[0]][1] != operations[pair[1]][1]]
    return np.array(sorted(set(apart)), dtype=np.int64).reshape(-1, 2)


def _when(row: _Row) -> tuple[int, int]:
    start = US * row.node.start_time_micros
    return start, start + US * row.node.duration_micros


def _name(row: _Row) -> str:
    """A collective that its own name does not tell has the kind that is stated."""
    if row.node.type not in _COMMUNICATES or collective_kind(row.node.name):
        return row.node.name
    if row.node.type != _COLLECTIVE:
        return f"{'send' if row.node.type == _SEND else 'recv'}.{row.node.name}"
    stated = int(row.attributes.get("comm_type", 0))
    return f"{_KINDS[stated] if 0 <= stated < len(_KINDS) else 'collective'}.{row.node.name}"


def _call(row: _Row) -> CollectiveCall:
    said = row.attributes
    name, listed, described = (str(said.get(each) or "") for each in ("pg_name", "pg_ranks", "pg_desc"))
    group = Group(name, described or name, tuple(int(each) for each in listed.split(",") if each.isdigit()))
    pair = (said.get("comm_src"), said.get("comm_dst"))
    sender, receiver = (int(each) if isinstance(each, int) else None for each in pair)
    return CollectiveCall(group, int(said.get("comm_size", 0)), sender, receiver)
