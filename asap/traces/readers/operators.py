"""What the host of a Kineto trace did: operators with the shapes of their inputs, modules, and other activities.

A second reading, for profiles alone: a replay needs none of it, and most events of a recording are of these sorts.
Format: https://github.com/pytorch/kineto and torch/csrc/autograd/profiler_kineto.cpp (shapes need ``record_shapes``,
modules ``with_stack``).
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from asap.profiles.collectives import stated_collective
from asap.profiles.host_time import SYNCHRONISATION, Activities, activity_of
from asap.profiles.operators import OperatorCall, cost_of
from asap.profiles.profile import CollectiveKind
from asap.traces.readers.json_stream import EventStream
from asap.traces.readers.kineto import KinetoEvent, linked, rank_of
from asap.traces.trace import Integers

US = 1000
_RUNTIME = ("cuda_runtime", "cuda_driver", "Runtime", "xpu_runtime", "xpu_driver")
_FRAMES = ("cpu_op", "Operator", "user_annotation", "python_function")
_UNUSED = tuple((category, b"") for category in (b"kernel", b"gpu_memcpy", b"gpu_memset", b"gpu_user_annotation"))
_MODULE, _NCCL = "nn.Module: ", "nccl:"
_RECOMPUTES = re.compile(r"CheckpointFunctionBackward$|torch/utils/checkpoint\.py\(\d+\): (?:unpack_hook|recompute_fn)")
_BACKWARD = "autograd::engine::evaluate_function"


class _Arguments(msgspec.Struct, gc=False):
    correlation: int = -1
    external: Any = msgspec.field(default=None, name="External id")
    sequence: Any = msgspec.field(default=-1, name="Sequence number")
    shapes: Any = msgspec.field(default=(), name="Input Dims")
    types: Any = msgspec.field(default=(), name="Input type")
    concrete: Any = msgspec.field(default=(), name="Concrete Inputs")


class _Event(KinetoEvent, gc=False):
    args: _Arguments | None = None


class Launched(NamedTuple):
    """What launched an operation: the call of an operator, which of its calls, the module, and whether it is done again
    for the backward pass; ``layer`` is the outermost module around it of which there are several."""

    call: OperatorCall | None
    instance: int
    module: str | None
    recomputed: bool
    collective: CollectiveKind | None = None
    """As PyTorch annotates it, of NCCL kernels that older versions of Kineto say nothing of."""
    layer: str | None = None


@dataclass(frozen=True, eq=False)
class HostWork:
    """What the host of one file did; times are absolute nanoseconds, ``launched`` is by correlation, and ``modules``
    how often each was called in forward passes."""

    rank: int
    launched: Mapping[int, Launched]
    activities: Activities
    calls_start: Mapping[int, int]
    modules: Mapping[str, int]

    def shifted(self, by: int) -> Activities:
        """The activities, ``by`` nanoseconds earlier."""
        spans = {kind: (start - by, end - by) for kind, (start, end) in self.activities.spans.items()}
        return Activities(spans, (self.activities.blocking[0] - by, self.activities.blocking[1] - by))


class _Frame(NamedTuple):
    start: int
    end: int
    event: _Event


def read_operators(path: Path) -> HostWork:
    """Read what the host did.

    Raises:
        BadInputError: the file cannot be read, is cut off or is not a trace.
    """
    frames: dict[object, list[_Frame]] = defaultdict(list)
    launches: dict[object, list[_Frame]] = defaultdict(list)
    stream = EventStream(path, _Event, _UNUSED)
    for events, _ in stream.slices():
        for event in events:
            if event.ph != "X":
                continue
            start = round(event.ts * US)
            frame = _Frame(start, start + max(round(event.dur * US), 0), event)
            if event.cat in _RUNTIME:
                launches[event.pid, event.tid].append(frame)
            elif event.cat in _FRAMES and (event.cat != "python_function" or _is_of_use(event.name)):
                frames[event.pid, event.tid].append(frame)
    called = Counter[str]()
    return HostWork(
        rank_of(path, stream.fields)[0], dict(_launched(frames, launches, called)), _activities(frames, launches),
        {linked(each.event.args): each.start for thread in launches.values() for each in thread if each.event.args},
        called,
    )  # fmt: skip


def _is_of_use(name: str) -> bool:
    return name.startswith(_MODULE) or activity_of(name) is not None or _RECOMPUTES.search(name) is not None


def _launched(
    frames: Mapping[object, list[_Frame]], launches: Mapping[object, list[_Frame]], called: Counter[str]
) -> Iterator[tuple[int, Launched]]:
    """For each launch the frames around it, and ``called`` filled. Forward passes come first: backward ones refer to
    their modules."""
    modules: dict[int, tuple[str, str | None]] = {}
    names = {frame.event.name for thread in frames.values() for frame in thread if frame.event.name.startswith(_MODULE)}
    several = {kind for kind, count in Counter(map(kind_of, names)).items() if count > 1}
    forward_first = sorted(
        frames.keys() | launches.keys(),
        key=lambda thread: not any(frame.event.name.startswith(_MODULE) for frame in frames.get(thread, ())),
    )
    for thread in forward_first:
        merged = sorted(
            [(frame.start, -frame.end, 0, frame) for frame in frames.get(thread, ())]
            + [(frame.start, 1, 1, frame) for frame in launches.get(thread, ())],
            key=lambda each: each[:3],
        )
        stack: list[_Frame] = []
        for start, _, is_launch, frame in merged:
            while stack and stack[-1].end <= start:
                stack.pop()
            if not is_launch:
                stack.append(frame)
                number = -1 if frame.event.name.startswith(_BACKWARD) else _sequence(frame)
                if number >= 0 and (module := _module(stack, {}, several)):
                    modules.setdefault(number, module)
                if frame.event.name in names and not any(_RECOMPUTES.search(each.event.name) for each in stack):
                    called[frame.event.name.removeprefix(_MODULE)] += 1
            elif (link := linked(frame.event.args)) >= 0:
                module, layer = _module(stack, modules, several) or (None, None)
                yield link, _owner(stack)._replace(module=module, layer=layer)


def _owner(stack: Sequence[_Frame]) -> Launched:
    """The nearest operator whose cost is known; else the nearest one."""
    operators = [
        frame for frame in reversed(stack) if "::" in frame.event.name and frame.event.cat != "python_function"
    ]
    called = [(frame, call_of(frame.event)) for frame in operators]
    frame, call = next(((f, c) for f, c in called if cost_of(c)), called[0] if called else (None, None))
    recomputed = False
    for each in reversed(stack):
        if _RECOMPUTES.search(each.event.name):
            recomputed = not each.event.name.startswith(_BACKWARD)
            break
        if each.event.name.startswith(_BACKWARD):
            break
    names = (frame.event.name for frame in reversed(stack))
    annotated = next((name.removeprefix(_NCCL) for name in names if name.startswith(_NCCL)), "")
    return Launched(call, id(frame), None, recomputed, stated_collective(annotated))


def call_of(event: _Event) -> OperatorCall:
    """The operator with what was recorded of its inputs."""
    arguments = event.args or _Arguments()
    shapes = tuple(_shape(each) for each in arguments.shapes) if isinstance(arguments.shapes, list) else ()
    types = tuple(map(str, arguments.types)) if isinstance(arguments.types, list) else ()
    concrete = tuple(map(str, arguments.concrete)) if isinstance(arguments.concrete, list) else ()
    return OperatorCall(event.name, shapes, types, concrete)


def _shape(value: object) -> tuple[int, ...]:
    return tuple(value) if isinstance(value, list) and all(isinstance(size, int) for size in value) else ()


def _sequence(frame: _Frame) -> int:
    number = frame.event.args.sequence if frame.event.args else -1
    return number if isinstance(number, int) else -1


@lru_cache(maxsize=1 << 16)
def kind_of(name: str) -> str:
    """A module without the number of its instance."""
    return re.sub(r"_\d+$", "", name.removeprefix(_MODULE))


def _module(
    stack: Sequence[_Frame], modules: Mapping[int, tuple[str, str | None]], several: set[str]
) -> tuple[str, str | None] | None:
    """The nearest module, and the outermost of which there are several; of a backward pass those of the forward one."""
    for frame in reversed(stack):
        if frame.event.name.startswith(_MODULE):
            around = (each.event.name for each in stack if each.event.name.startswith(_MODULE))
            layer = next((name.removeprefix(_MODULE) for name in around if kind_of(name) in several), None)
            return kind_of(frame.event.name), layer
        if found := modules.get(_sequence(frame)):
            return found
    return None


def _activities(frames: Mapping[object, list[_Frame]], launches: Mapping[object, list[_Frame]]) -> Activities:
    """Of the threads that launch anything: what others do costs the device nothing."""
    spans: dict[str, list[tuple[int, int]]] = defaultdict(list)
    blocking: list[tuple[int, int]] = []
    for thread in launches:
        begun = sorted(each.start for each in launches[thread] if "StreamBeginCapture" in each.event.name)
        ended = sorted(each.end for each in launches[thread] if "StreamEndCapture" in each.event.name)
        spans["graph_capture"] += zip(begun, ended, strict=False)
        for frame in (*launches[thread], *frames.get(thread, ())):
            if kind := activity_of(frame.event.name, frame.end - frame.start):
                spans[kind].append((frame.start, frame.end))
                if kind == SYNCHRONISATION:
                    blocking.append((frame.start, frame.end))
    return Activities({kind: columns_of(found) for kind, found in spans.items()}, columns_of(blocking))


def columns_of(spans: Sequence[tuple[int, int]]) -> tuple[Integers, Integers]:
    """Starts and ends."""
    table = np.array(spans, dtype=np.int64).reshape(-1, 2)
    return table[:, 0], table[:, 1]
