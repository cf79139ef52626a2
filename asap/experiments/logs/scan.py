"""One pass over a log: every line that a table knows, in order, with bounded memory.

All texts of the tables are searched for at once (Aho and Corasick). Of very many lines alike an even choice is read.
"""

import re
from array import array
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, cast

from ahocorasick_rs import BytesAhoCorasick, Implementation

from asap.experiments.logs import formats
from asap.experiments.logs.blocks import BlockStart, Collector, RawBlock, lines_before, starts
from asap.experiments.logs.formats import DeviceForm, EndingForm, Form
from asap.experiments.logs.text import CLOCK, Unwrapper, chunks, clean, decoder_of, is_training_bar, rank_of

_CONFIG_PARAM = b"Config param "
_MOST = 4000  # statements, devices and endings that are kept; of more only the last
_MOST_STEPS = 40_000
_OF_STEP = frozenset(("step", "loss", "seconds", "milliseconds", "steps_per_second"))  # else it is prose
MOST_LINES_OF_ENDING = 7  # of a message with all its figures, in a narrow terminal
_MOST_OF_PIECE, _MOST_OF_FIRST, _MOST_GENERAL = 200, 4000, 60
"""Lines of a form that are read of a piece; of the first piece, which is the whole of most logs; of what is general."""
_MANY, _WINDOWS, _SHARE = 4000, 32, 16
"""What has more lines in a piece is looked for in so many parts of the next, which together are such a share of it."""
_COLOURS = re.compile(rb"\x1b\[[\d;]{0,20}m")
_PREFIX = 120  # characters of a line in which its time stands


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
    settings: list[tuple[int, dict[str, str]]] = field(default_factory=list)  # offset, fields: lines of one setting
    devices: list[Found] = field(default_factory=list)
    endings: list[Found] = field(default_factory=list)
    steps: list[tuple[Form, dict[str, str], int, int]] = field(default_factory=list)  # form, fields, line, offset
    totals: list[tuple[Form, dict[str, str], int, int]] = field(default_factory=list)
    lines: int = 0
    size: int = 0
    untimed: list[tuple[Form, dict[str, str], int, int]] = field(default_factory=list)
    """Lines with a step and a loss alone, which count where no line has a time or a rate."""
    thinned: int = 1  # one step in so many was kept


def scan(path: Path, progress: Callable[[int], None] | None = None) -> Scan:
    """Read a log once; ``progress`` is called with the bytes read so far. Raises like :func:`chunks`."""
    return _scan(chunks(path, progress))


def scan_text(text: bytes) -> Scan:
    """Read a log, or the beginning of one, that is in memory."""
    return _scan([decoder_of(text)(text) + b"\n"])


def _scan(chunks: Iterable[bytes]) -> Scan:
    pass_ = _Pass()
    for chunk in chunks:
        pass_.read(chunk)
    return pass_.finish()


_Known = Form | EndingForm | DeviceForm | BlockStart | None
"""What a line is read by; ``None`` for MaxText's ``Config param``."""


def _is_general(form: _Known) -> bool:
    return isinstance(form, Form) and form.general


@cache
def _known() -> tuple[_Known, ...]:
    forms = (*formats.steps(), *formats.totals(), *formats.statements(), *formats.devices(), *formats.endings())
    return tuple(sorted((*forms, *starts(), None), key=_is_general))


@cache
def _finder(general: bool, often: frozenset[int], only: bool = False) -> tuple[BytesAhoCorasick, list[int]]:
    """Finds what :func:`_known` contains, but for what stands often, or ``only`` that; what is general, and comes last,
    only if it is looked for. With the place of the first that has the same fields."""
    forms, alike = _known(), dict[int, int]()
    keys = [id(form.fields) if isinstance(form, Form) and form.general else -n for n, form in enumerate(forms)]
    first = [alike.setdefault(key, n) for n, key in enumerate(keys)]
    places = [n for n, form in enumerate(forms) if (general or not _is_general(form)) and (first[n] in often) is only]
    anchors = [_CONFIG_PARAM if (form := forms[n]) is None else form.anchor for n in places]
    return BytesAhoCorasick(anchors, implementation=Implementation.DFA), [first[n] for n in places]


def _find(general: bool, often: frozenset[int], only: bool, parts: Iterable[tuple[int, bytes]]) -> dict[int, list[int]]:
    """Where in parts of a piece, which begin there, what :func:`_finder` knows stands."""
    automaton, places = _finder(general, often, only)
    found: dict[int, list[int]] = {}
    for begin, part in parts:
        for which, start, _ in automaton.find_matches_as_indexes(part, overlapping=True):
            found.setdefault(places[which], []).append(begin + start)
    return found


class _Pass:
    def __init__(self) -> None:
        self.scan = Scan()
        self._unwrapper = Unwrapper()
        self._steps, self._totals = frozenset(map(id, formats.steps())), frozenset(map(id, formats.totals()))
        self._of_step = self._steps | {id(form) for form in formats.totals() if form.stack != "any"}
        self._collectors: list[Collector] = []
        self._taken = 0
        self._unfinished: Found | None = None
        self._often, self._carried = frozenset[int](), b""
        self._stands_for = array("l")
        """How many steps each one that is kept stands for."""

    def read(self, chunk: bytes) -> None:
        """Take a piece that ends with a line."""
        self._unwrapper = self._unwrapper if self.scan.size else Unwrapper.of(chunk)
        chunk = self._unwrapper.piece(chunk)
        if not self.scan.size and b"\x1b" in chunk:
            chunk = _COLOURS.sub(b"", chunk)
        self._taken = self._feed_open(chunk) if self._collectors else 0
        if self._unfinished is not None:
            self._read_on(self._unfinished, chunk, 0)
        self.scan.lines += self._look(chunk)
        self.scan.size += len(chunk)

    def _text(self, line: bytes) -> str:
        return clean(self._unwrapper.lines(line))

    def _process(self, line: bytes) -> str:
        return self._unwrapper.process(line)

    def _look(self, chunk: bytes) -> int:
        """Take every line that a table knows; how many lines there are."""
        number, counted, done = self.scan.lines, 0, -1
        for start, found in self._lines(chunk):
            number += chunk.count(b"\n", counted, start)
            counted = start
            end = chunk.find(b"\n", start)
            line, said = self._text(chunk[start:end]), False  # by a program's own form
            self._carried = chunk[start:end]
            for form, stands_for in found:
                if isinstance(form, BlockStart):
                    if start > done and start >= self._taken:
                        done = self._begin(form, line, chunk, start, end, number + 1, self.scan.size)
                elif isinstance(form, EndingForm):
                    if form.tells(line):
                        ending = Found(form, line[:2000], number + 1, self.scan.size + start)
                        _append(self.scan.endings, ending)
                        self._read_on(ending, chunk, end + 1)
                elif not (said and _is_general(form)):
                    said |= self._take(form, line, number + 1, self.scan.size + start, stands_for)
        return number + chunk.count(b"\n", counted) - self.scan.lines

    def _lines(self, chunk: bytes) -> list[tuple[int, list[tuple[_Known, int]]]]:
        """Beginnings of lines, in order, each with what it is read by and how many such lines it stands for."""
        every = all(one[0].general for one in self.scan.steps[-1:])  # until steps of a program are seen
        places, in_parts = self._places(chunk, every)
        found, many = dict[int, list[tuple[_Known, int]]](), False
        for which in sorted(places):
            form, at, stride = _known()[which], places[which], 1
            most = _MOST_GENERAL if _is_general(form) else _MOST_OF_PIECE
            most = most if self.scan.size else _MOST_OF_FIRST
            if many and _is_general(form):
                break  # where a program says very many steps, nothing else says more
            if len(at) > most and id(form) not in self._steps:
                at = at[: most // 2] + at[-most // 2 :]
            elif isinstance(form, Form) and len(at) > most:
                stride = -(-len(at) // most) * (_SHARE if which in in_parts else 1)
            last, own = -1, isinstance(form, Form) and id(form) in self._of_step and not form.bar
            many |= own and stride > 1 and not _is_general(form)
            for place in at[:-1:stride] + at[-1:]:
                before, last = last, chunk.rfind(b"\n", 0, place) + 1
                found.setdefault(last, []).extend([(form, stride)] if last != before else [])
        return sorted(found.items(), key=lambda one: one[0])

    def _places(self, chunk: bytes, every: bool) -> tuple[dict[int, list[int]], frozenset[int]]:
        """Where what the tables know stands, and which of it was looked for in parts: it stays frequent."""
        often = frozenset(one for one in self._often if every or not _is_general(_known()[one]))
        places, seen = _find(every, often, False, [(0, chunk)]), dict[int, list[int]]()
        if often:
            rest = len(chunk) - (size := len(chunk) // (_WINDOWS * _SHARE))
            starts = [rest * n // (_WINDOWS - 1) for n in range(_WINDOWS)]
            parts = [(chunk.rfind(b"\n", 0, one) + 1, chunk.find(b"\n", one + size - 1) + 1) for one in starts]
            seen = _find(every, often, True, [(begin, chunk[begin:end]) for begin, end in parts])
            seen = {which: at for which, at in seen.items() if len(at) * _SHARE > _MANY}
            if lost := often.difference(seen):
                places |= _find(every, lost, True, [(0, chunk)])
        self._often = frozenset(n for n, at in places.items() if len(at) > _MANY and isinstance(_known()[n], Form))
        self._often |= seen.keys()
        return places | seen, frozenset(seen)

    def _read_on(self, ending: Found, chunk: bytes, place: int) -> None:
        """Lines of the same process behind one that tells an ending with figures, up to another ending."""
        form, prefix = cast(EndingForm, ending.form), rank_of(ending.text)
        self._unfinished = None
        while form.spans and len(ending.rest) < MOST_LINES_OF_ENDING:
            if (end := chunk.find(b"\n", place)) < 0:
                self._unfinished = ending
                return
            line, place = self._text(chunk[place:end]), end + 1
            if (rank := rank_of(line)) in (prefix, ""):
                if not line.strip() or form.anchor in line.encode("utf-8", "replace"):
                    return
                ending.rest.append(line[len(rank) : 400])

    def finish(self) -> Scan:
        """What was found; blocks that the end of the log cuts are kept as they are."""
        self.scan.blocks += [one.block for one in self._collectors if one.block.lines]
        self._thin()
        self.scan.steps = self.scan.steps or self.scan.untimed
        if len({one[0].general for one in self.scan.steps if not one[0].bar}) > 1:
            self.scan.steps = [one for one in self.scan.steps if not one[0].general]
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
        line = line[len(rank := rank_of(line)) :]
        inside = any(one.open and one.block.kind == start.kind for one in self._collectors)
        inside |= start.itself and any(number < one.line + len(one.lines) for one in self.scan.blocks[-1:])
        if inside or (found := start.pattern.search(line)) is None:
            return -1
        before = lines_before(start, line, chunk, place, self._text)
        process = self._process(chunk[place:end])
        collector = Collector(start, found, line, number - len(before), base + place, before, rank, process)
        position = self._collect(collector, chunk, end + 1)
        return position - 2 if start.kind != "yaml" else place

    def _collect(self, collector: Collector, chunk: bytes, place: int) -> int:
        """Give lines to a block, for as long as they are its own; where the first that is not begins."""
        while collector.open and (end := chunk.find(b"\n", place)) >= 0:
            if not collector.is_of_another(self._process(chunk[place:end])):
                collector.feed(self._text(chunk[place:end]))
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

    def _take(self, form: Form | DeviceForm | None, line: str, number: int, offset: int, stands_for: int) -> bool:
        """Read a line by a form; whether it is a program's own of a step, and says something."""
        if form is None:
            key, separator, value = line.partition("Config param ")[2].partition(":")
            self.scan.parameters += [(offset, number, key.strip()[:80], value.strip()[:2000])] if separator else []
            del self.scan.parameters[: -10 * _MOST]
        elif isinstance(form, DeviceForm):
            _append(self.scan.devices, Found(form, line[: 16 << 10], number, offset))
        elif id(form) in self._steps:
            return self._step(form, line, number, offset, stands_for)
        elif id(form) in self._totals:
            if fields := form.read(line):
                _append(self.scan.totals, (form, fields, number, offset))
                return id(form) in self._of_step
        elif form.general:
            self.scan.settings += [(offset, fields) for fields in [form.read(line)] if fields]
        else:
            _append(self.scan.statements, Found(form, line[:8000], number, offset))
        return False

    def _step(self, form: Form, line: str, number: int, offset: int, stands_for: int) -> bool:
        fields = form.read(line)
        carried = clean(self._carried) if self._unwrapper.prefixes else line  # one of them may be the program's own
        if carried is not line and not (form.general or form.bar):
            fields = form.read(carried) | fields
        first = CLOCK.search(line[:_PREFIX])
        clocks = [first[0]] if first else CLOCK.findall(carried.removesuffix(line))[-1:]
        if "step" in fields and clocks:
            fields["clock"] = clocks[0].replace(",", ".")
        if not fields.keys() & formats.TIMED or (form.general and not fields.keys() & _OF_STEP):
            if not form.bar and fields.keys() >= {"step", "loss"} and len(self.scan.untimed) < _MOST_STEPS:
                self.scan.untimed.append((form, fields, number, offset))
            return bool(fields) and not form.bar
        if form.bar and (not is_training_bar(line) or fields.get("total_steps") == "1"):
            return False
        self.scan.steps.append((form, fields, number, offset))
        self._stands_for.append(stands_for)
        if len(self.scan.steps) >= _MOST_STEPS:
            self._thin()
            self.scan.steps = self.scan.steps[::2]
            self._stands_for = array("l", [2 * self.scan.thinned]) * len(self.scan.steps)
        return not form.bar


def _append(kept: list[Any], one: Any) -> None:
    kept.append(one)
    if len(kept) > 2 * _MOST:
        del kept[_MOST // 2 : -_MOST]
