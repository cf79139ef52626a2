"""One pass over a log: every line that a table knows, in order, with bounded memory.

The beginning is searched for everything. Behind it only for what was met there, and for how runs end and begin again.
"""

import re
from array import array
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from asap.experiments.logs.blocks import BlockStart, Collector, RawBlock, arguments_before, starts
from asap.experiments.logs.formats import DeviceForm, EndingForm, Form, devices, endings, statements, steps, totals
from asap.experiments.logs.text import chunks, clean, is_training_bar, lines_of, rank_of, seconds_of_day, without_rank

HEAD = 4 << 20
"""Bytes at the beginning, and behind each new block of settings, that are searched for everything."""
_CONFIG_PARAM = b"Config param "
_MOST = 4000
"""Statements, devices and endings that are kept; of more only the last."""
_MOST_STEPS = 40_000
_TIMED = (
    "seconds", "milliseconds", "milliseconds_of_iteration", "seconds_each", "tokens_per_second_per_device",
    "samples_per_second", "steps_per_second", "tokens_per_second",
)  # fmt: skip
"""Fields that say how long a step takes, the most exact first."""
MOST_LINES_OF_ENDING = 7
"""Of a message of PyTorch or XLA, with all its figures, in a narrow terminal."""
_MOST_OF_PIECE = 500
_CROWDED = 4000
"""Steps of a piece above which not all are read, in the beginning too."""
_COLOURS = re.compile(rb"\x1b\[[\d;]{0,20}m")
_SAMPLE = 256 << 10
_PREFIX = 120
"""Characters of a line in which its time stands."""
_BAR_SAMPLE = 64 << 10
"""Bytes of a piece in which progress bars are read: they are redrawn many times a step."""


@dataclass(frozen=True)
class Found:
    """A line that a table knows."""

    form: Form | EndingForm | DeviceForm
    text: str
    line: int
    offset: int
    rest: list[str] = field(default_factory=list)
    """The lines behind an ending that has figures: a terminal or a launcher may have broken it."""


@dataclass
class Scan:
    """What one pass found, in the order of the log."""

    blocks: list[RawBlock] = field(default_factory=list)
    parameters: list[tuple[int, int, str, str]] = field(default_factory=list)
    """MaxText's ``Config param``: offset, line, key, value."""
    statements: list[Found] = field(default_factory=list)
    devices: list[Found] = field(default_factory=list)
    endings: list[Found] = field(default_factory=list)
    steps: list[tuple[Form, dict[str, str], int, int]] = field(default_factory=list)
    """Form, fields, line and offset."""
    totals: list[tuple[Form, dict[str, str], int, int]] = field(default_factory=list)
    lines: int = 0
    size: int = 0
    thinned: int = 1
    """One step in so many was kept."""


def scan(path: Path, progress: Callable[[int], None] | None = None) -> Scan:
    """Read a log once; ``progress`` is called with the bytes read so far. Raises like :func:`chunks`."""
    return _scan(chunks(path, progress))


def scan_text(text: bytes) -> Scan:
    """Read a log, or the beginning of one, that is in memory."""
    return _scan([lines_of(text)])


def _scan(chunks: Iterable[bytes]) -> Scan:
    pass_ = _Pass()
    for chunk in chunks:
        pass_.read(chunk)
    return pass_.finish()


_Anchored = tuple[bytes, Form | EndingForm | DeviceForm | BlockStart | None]


def _all_anchors() -> list[_Anchored]:
    forms = (*steps(), *totals(), *statements(), *devices(), *endings(), *starts())
    return [*((form.anchor, form) for form in forms), (_CONFIG_PARAM, None)]


class _Pass:
    def __init__(self) -> None:
        self.scan = Scan()
        self._anchors = _all_anchors()
        self._timed: dict[bytes, list[str]] = {}
        self._steps, self._totals = frozenset(map(id, steps())), frozenset(map(id, totals()))
        self._met: set[bytes] = set()
        self._head_until = HEAD
        self._collectors: list[Collector] = []
        self._taken = 0
        self._unfinished: Found | None = None
        self._stands_for = array("l")
        """How many steps each one that is kept stands for."""

    def read(self, chunk: bytes) -> None:
        """Take a piece that ends with a line."""
        if self.scan.size < self._head_until and b"\x1b" in chunk:
            chunk = _COLOURS.sub(b"", chunk)
        self._taken = self._feed_open(chunk) if self._collectors else 0
        if self._unfinished is not None:
            self._read_on(self._unfinished, chunk, 0)
        if self.scan.size < self._head_until:
            crowded = [form for form in steps() if chunk.count(form.anchor) > _CROWDED]
            many = {form.anchor for form in crowded}
            self._look(chunk, [one for one in self._anchors if one[0] not in many], 0)
            self._met |= many
            for form in crowded:
                self._all_steps(form, chunk)
        else:
            self._look_later(chunk)
        self.scan.lines += chunk.count(b"\n")
        self.scan.size += len(chunk)

    def _look(self, chunk: bytes, anchors: "list[_Anchored]", begin: int) -> None:
        """Take every line from a place on that has one of the anchors."""
        number, counted, done = self.scan.lines, 0, -1
        for start, found in _lines(chunk, anchors, begin):
            number += chunk.count(b"\n", counted, start)
            counted = start
            end = chunk.find(b"\n", start)
            line = clean(chunk[start:end])
            for anchor, form in found:
                self._met.add(anchor)
                if isinstance(form, BlockStart):
                    if start > done and start >= self._taken:
                        done = self._begin(form, line, chunk, start, end, number + 1, self.scan.size)
                elif isinstance(form, EndingForm):
                    if form.tells(line):
                        ending = Found(form, line[:2000], number + 1, self.scan.size + start)
                        _append(self.scan.endings, ending)
                        self._read_on(ending, chunk, end + 1)
                else:
                    self._take(form, line, number + 1, self.scan.size + start)

    def _read_on(self, ending: Found, chunk: bytes, place: int) -> None:
        """Lines of the same process behind one that tells an ending with figures, up to another ending."""
        form, prefix = cast(EndingForm, ending.form), rank_of(ending.text)
        self._unfinished = None
        while form.spans and len(ending.rest) < MOST_LINES_OF_ENDING:
            if (end := chunk.find(b"\n", place)) < 0:
                self._unfinished = ending
                return
            line, place = clean(chunk[place:end]), end + 1
            if (rank := rank_of(line)) in (prefix, ""):
                if not line.strip() or form.anchor in line.encode("utf-8", "replace"):
                    return
                ending.rest.append(line[len(rank) : 400])

    def _look_later(self, chunk: bytes) -> None:
        """Behind the beginning: times of steps all at once, what begins a run again, and endings behind the steps."""
        again = [
            anchor for anchor, form in self._anchors if anchor in self._met and isinstance(form, BlockStart | None)
        ]
        if any(anchor in chunk for anchor in again):
            self._head_until = self.scan.size + HEAD
            self._look(chunk, self._anchors, 0)
            return
        forms = [form for form in steps() if form.anchor in self._timed]
        last = max((chunk.rfind(form.anchor) for form in forms), default=-1)
        for form in forms:
            self._all_steps(form, chunk)
        rest = chunk.rfind(b"\n", 0, last) + 1 if last >= 0 else 0
        ends = [one for one in self._anchors if isinstance(one[1], EndingForm)]
        ends += [one for one in self._anchors if id(one[1]) in self._totals and one[0] in self._met]
        self._look(chunk, ends, rest)

    def _all_steps(self, form: Form, chunk: bytes) -> None:
        """Steps of a piece; of very many an even choice."""
        chunk = chunk[:_BAR_SAMPLE] if form.bar else chunk
        # a step that stands on several lines is counted by one of them
        field = next((name for name in self._timed.get(form.anchor, ()) if name in form.fields), None)
        anchor = form.marks(field) if form.spread and field else form.anchor
        stride = max(1, -(-_count(anchor, chunk) // _MOST_OF_PIECE))
        hop = len(chunk) // _MOST_OF_PIECE if stride > 1 else 0
        place = chunk.find(anchor)
        while place >= 0:
            begin, end = chunk.rfind(b"\n", 0, place) + 1, chunk.find(b"\n", place)
            line = clean(chunk[begin:end])
            self._step(form, line, self.scan.lines + 1, self.scan.size + begin, stride)
            place = chunk.find(anchor, max(end, begin + hop))

    def finish(self) -> Scan:
        """What was found; blocks that the end of the log cuts are kept as they are."""
        self.scan.blocks += [one.block for one in self._collectors if one.block.lines]
        self._thin()
        return self.scan

    def _thin(self) -> None:
        """An even choice of the steps: no part of the log counts more than another."""
        self.scan.thinned = most = max(self._stands_for, default=1)
        kept, due = [], 0
        for step, steps_of_it in zip(self.scan.steps, self._stands_for, strict=True):
            due += steps_of_it
            if due >= most:
                kept.append(step)
                due -= most
        self.scan.steps = kept

    def _begin(self, start: BlockStart, line: str, chunk: bytes, place: int, end: int, number: int, base: int) -> int:
        """Collect a block; its last place in the piece, so that nothing inside of it begins another."""
        line = without_rank(line)
        inside = any(one.open and one.block.kind == start.kind for one in self._collectors)
        if inside or (found := start.pattern.search(line)) is None:
            return -1
        if self.scan.steps or self.scan.size > HEAD:
            self._head_until = self.scan.size + HEAD
        before = arguments_before(chunk, place) if start.kind == "arguments" and "arguments" not in line else []
        collector = Collector(start, found, line, number - len(before), base + place, before)
        position = self._collect(collector, chunk, end + 1)
        return position - 2 if start.kind != "yaml" else place

    def _collect(self, collector: Collector, chunk: bytes, place: int) -> int:
        """Give lines to a block, for as long as they are its own; where the first that is not begins."""
        while collector.open and (end := chunk.find(b"\n", place)) >= 0:
            collector.feed(clean(chunk[place:end]))
            place = end + 1
        if collector.open:
            self._collectors.append(collector)
        elif collector.block.lines:
            self._keep(collector.block)
        return place

    def _feed_open(self, chunk: bytes) -> int:
        """Give a piece's first lines to the blocks that go on in it; where the last line ends in which none begins."""
        going_on, self._collectors = self._collectors, []
        places = [(self._collect(one, chunk, 0), one.block.kind) for one in going_on]
        return max((place for place, kind in places if kind != "yaml"), default=0)

    def _keep(self, block: RawBlock) -> None:
        """Each rank may print the same block: only the first of those that are equal stays, for a run."""
        same = [one for one in self.scan.blocks[-64:] if one.kind == block.kind and one.lines == block.lines]
        if same and not (self.scan.steps and same[-1].offset < self.scan.steps[-1][3]):
            return
        self.scan.blocks.append(block)
        del self.scan.blocks[:-128]

    def _take(self, form: "Form | DeviceForm | None", line: str, number: int, offset: int) -> None:
        if form is None:
            key, separator, value = line.partition("Config param ")[2].partition(":")
            if separator:
                self.scan.parameters.append((offset, number, key.strip()[:80], value.strip()[:2000]))
                del self.scan.parameters[: -10 * _MOST]
        elif isinstance(form, DeviceForm):
            _append(self.scan.devices, Found(form, line[: 16 << 10], number, offset))
        elif id(form) in self._steps:
            self._step(form, line, number, offset)
        elif id(form) in self._totals:
            if fields := form.read(line):
                _append(self.scan.totals, (form, fields, number, offset))
        else:
            _append(self.scan.statements, Found(form, line[:8000], number, offset))

    def _step(self, form: Form, line: str, number: int, offset: int, stands_for: int = 1) -> None:
        fields = form.read(line)
        if "step" in fields and (clock := seconds_of_day(line[:_PREFIX])):
            fields["clock"] = clock
        if not (timed := [name for name in _TIMED if name in fields]) or (form.bar and not is_training_bar(line)):
            return
        self._timed[form.anchor] = timed
        self.scan.steps.append((form, fields, number, offset))
        self._stands_for.append(stands_for)
        if len(self.scan.steps) >= _MOST_STEPS:
            self._thin()
            self.scan.steps = self.scan.steps[::2]
            self._stands_for = array("l", [2 * self.scan.thinned]) * len(self.scan.steps)


def _count(anchor: bytes, chunk: bytes) -> int:
    """How often a text occurs in a piece; of very often an estimate from its beginning."""
    some = chunk.count(anchor, 0, _SAMPLE)
    return some * len(chunk) // _SAMPLE if some > _MOST_OF_PIECE and len(chunk) > _SAMPLE else chunk.count(anchor)


def _append(kept: list[Any], one: Any) -> None:
    kept.append(one)
    if len(kept) > 2 * _MOST:
        del kept[_MOST // 2 : -_MOST]


def _lines(chunk: bytes, anchors: "list[_Anchored]", begin: int) -> list[tuple[int, list[_Anchored]]]:
    """Beginnings of the lines from a place on that have anchors, in order, with these."""
    found: dict[int, list[_Anchored]] = {}
    for one in anchors:
        place = chunk.find(one[0], begin)
        while place >= 0:
            found.setdefault(chunk.rfind(b"\n", 0, place) + 1, []).append(one)
            place = chunk.find(one[0], chunk.find(b"\n", place))
    return sorted(found.items(), key=lambda one: one[0])
