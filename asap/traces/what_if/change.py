"""The grammar of changes."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from asap.core.errors import InsufficientEvidenceError, UsageError
from asap.core.text import plain
from asap.profiles.kernel_names import compute_class
from asap.traces.graph.graph import Cause, Graph, RankNodes
from asap.traces.trace import Integers, OperationKind, RankTrace, collective_kind, is_loading

GRAMMAR = """\
remove:WHAT      it takes no time and nobody waits for it
scale:WHAT=F     it takes F times as long: scale:all-reduce=0.5
overlap:WHAT     computation waits for the last of it in each step alone
serialise:WHAT   it runs alone: what comes next on the device waits for it
even:WHAT        each takes what those of its name take on average over ranks and steps: no stragglers

WHAT is one of
  host           everything that host threads do between and in their calls
  dataloader     waiting for the next batch
  compute, communication, copy, memset
  matmul, convolution, attention
  all-reduce, all-gather, reduce-scatter, all-to-all, collective-permute, collective-broadcast, send-recv
  name~TEXT      operations with TEXT in their name
overlap and serialise take communication, or one collective."""

SETTINGS = """\
plan:DEGREES     another plan: plan:data=8 model=2
layers=N  hidden=N  sequence=N  batch=N (sequences a step, whole job)  microbatches=N
schedule=NAME    of the pipeline: gpipe, 1f1b, interleaved:V (V stages a device), zero-bubble
chip=NAME        as many devices of another kind
ranks=N          more or fewer devices on the data axis; the batch stays unless batch= says otherwise"""

COLLECTIVES = (
    "all-reduce",
    "all-gather",
    "reduce-scatter",
    "all-to-all",
    "collective-permute",
    "collective-broadcast",
    "send-recv",
)
KINDS = ("compute", "communication", "copy", "memset")
CLASSES = ("matmul", "convolution", "attention")
HOST, DATALOADER, BY_NAME = "host", "dataloader", "name~"
NOT_FROM_A_TRACE = ("plan", "layers", "hidden", "sequence", "batch", "microbatches", "schedule", "chip", "ranks")
"""Known wishes that need kernel times for shapes or devices that were never traced."""

_FORM = re.compile(r"(?P<action>[a-z]+):(?P<what>[^=]+?)(?:=(?P<factor>[^=]+))?")
_SPELLINGS = {"serialize": "serialise", "cpu": HOST, "data-loader": DATALOADER}


class Action(StrEnum):
    """What is done to it."""

    REMOVE = "remove"
    SCALE = "scale"
    OVERLAP = "overlap"
    SERIALISE = "serialise"
    EVEN = "even"


@dataclass(frozen=True)
class Change:
    """One change; ``factor`` is for the time of what it concerns."""

    action: Action
    what: str
    factor: float = 0.0

    def __str__(self) -> str:
        return f"{self.action}:{self.what}" + (f"={self.factor:g}" if self.action is Action.SCALE else "")


def parse_change(text: str) -> Change:
    """``scale:all-reduce=0.5`` → a change.

    Raises:
        UsageError: it is not one, or none that a trace alone can answer.
    """
    wish = re.split(r"[:=]", text.strip(), maxsplit=1)[0]
    if wish in NOT_FROM_A_TRACE:
        raise UsageError(
            f"{wish} needs times of kernels that the trace does not hold",
            where=plain(text, 80),
            hint="say what was traced: --experiment ID, whose model, batch, hardware and plan are known",
        )
    found = _FORM.fullmatch(text.strip())
    action = _SPELLINGS.get(found["action"], found["action"]) if found else ""
    if found is None or action not in set(Action):
        raise _unknown(text, "is not a change")
    what = _SPELLINGS.get(found["what"].strip(), found["what"].strip())
    _check_target(text, Action(action), what)
    if (found["factor"] is not None) != (action == Action.SCALE):
        raise _unknown(text, "needs a factor" if action == Action.SCALE else "takes no factor")
    return Change(Action(action), what, _factor(text, found["factor"]) if found["factor"] else 0.0)


def _check_target(text: str, action: Action, what: str) -> None:
    communication = ("communication", *COLLECTIVES)
    every = (HOST, DATALOADER, *KINDS, *CLASSES, *COLLECTIVES)
    if action in (Action.OVERLAP, Action.SERIALISE):
        if what not in communication:
            raise _unknown(text, "concerns communication only")
    elif action is Action.EVEN and what in (HOST, DATALOADER):
        raise _unknown(text, "concerns operations of devices only")
    elif what not in every and not (what.startswith(BY_NAME) and len(what) > len(BY_NAME)):
        raise _unknown(text, f"{plain(what, 40)!r} is nothing that can be changed")


def _factor(text: str, factor: str) -> float:
    try:
        value = float(factor)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise _unknown(text, "needs a factor of zero or more")
    return value


def _unknown(text: str, message: str) -> UsageError:
    return UsageError(message, where=plain(text, 80), hint="asap trace what-if --help lists the changes")


def selected_operations(graph: Graph, what: str) -> list[NDArray[np.bool_]]:
    """For each rank, which of its operations are meant.

    Raises:
        InsufficientEvidenceError: the trace holds none.
    """
    masks = [_mask(rank, what) for rank in graph.trace.ranks]
    if not any(mask.any() for mask in masks):
        message = f"the trace holds no operation of {plain(what, 60)}"
        raise InsufficientEvidenceError(message, hint="asap trace replay shows what it holds")
    return masks


def dataloader_time(graph: Graph) -> Integers:
    """For each edge, how many of its nanoseconds the host spent waiting for the next batch.

    Raises:
        InsufficientEvidenceError: the trace does not say when that was.
    """
    edges = graph.edges
    found = np.zeros(len(edges), dtype=np.int64)
    known = False
    for rank, nodes in zip(graph.trace.ranks, graph.nodes, strict=True):
        loads = np.array([is_loading(name) for name in rank.names], dtype=bool)
        spans = rank.spans.take(loads[rank.spans.name])
        known |= len(spans) > 0
        for lane in np.unique(rank.caller[spans.lane]):
            here = spans.take(rank.caller[spans.lane] == lane)
            mine = (edges.cause == Cause.HOST) & np.isin(edges.target, _nodes_of_thread(rank, nodes, int(lane)))
            found[mine] += _overlap(
                graph.measured[edges.source[mine]], graph.measured[edges.target[mine]], here.start, here.end
            )
    if not known:
        hint = "PyTorch names them enumerate(DataLoader)"
        raise InsufficientEvidenceError("the trace does not say when the data loader worked", hint=hint)
    return np.minimum(found, edges.weight)


def _nodes_of_thread(rank: RankTrace, nodes: RankNodes, lane: int) -> Integers:
    calls = rank.caller[rank.calls.lane] == lane
    parts: Sequence[Integers] = (nodes.call_start[calls], nodes.call_end[calls], nodes.step_start, nodes.step_end)
    return np.concatenate(parts)


def _overlap(start: Integers, end: Integers, from_: Integers, to: Integers) -> Integers:
    """Of each interval, how much lies within the others, which do not overlap each other."""
    total = np.concatenate([[0], np.cumsum(to - from_)])

    def covered(moment: Integers) -> Integers:
        begun = np.searchsorted(from_, moment, side="right")
        running = np.maximum(begun - 1, 0)
        partial = np.clip(moment - from_[running], 0, to[running] - from_[running])
        return np.where(begun > 0, total[running] + partial, 0)

    return covered(end) - covered(start)


def _mask(rank: RankTrace, what: str) -> NDArray[np.bool_]:
    kinds = {kind.name.lower(): kind for kind in OperationKind}
    if what in kinds:
        return rank.operations.kind == kinds[what]
    if what in COLLECTIVES:
        named = [collective_kind(name) == what for name in rank.names]
    elif what in CLASSES:
        named = [collective_kind(name) is None and compute_class(name) == what for name in rank.names]
    else:
        named = [what.removeprefix(BY_NAME).lower() in name.lower() for name in rank.names]
    return np.array(named, dtype=bool)[rank.operations.name]
