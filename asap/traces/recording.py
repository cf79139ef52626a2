"""What was recorded of a run, read once: its graph, and the profile that it makes. Readers are imported when needed."""

import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from asap.core.errors import AsapError, BadInputError, NotFoundError
from asap.core.files import exists, user_path
from asap.core.text import plain
from asap.hardware import Chip
from asap.profiles import Profile, read_profile
from asap.profiles.kpis import after_start_up, start_up
from asap.profiles.locate import locate
from asap.traces.graph.graph import Graph
from asap.traces.trace import UNSAID, Group, RankTrace, Step, Trace

if TYPE_CHECKING:
    from asap.traces.readers.operators import HostWork

EXPECTED = "give Kineto *.json[.gz], *.xplane.pb, nsys *.sqlite, nsys-jax *.parquet, *.et files, or a folder"
EXPORT = "nsys export --type sqlite FILE.nsys-rep makes one that is"
_KINETO, _XPLANE, _THUNKS, _PASSES, _CHAKRA, _NSYS = "kineto", "xplane", "nsys-jax", "passes", "chakra", "nsys"
_LOG_FOLDERS = ("plugins", "profile")  # where TensorBoard keeps the runs of a log directory

_BEGINNING_BYTES = 1_000_000  # within which Kineto names its events

_PROJECTION = "nvtx_gpu_proj_trace"  # of nsys-jax, as it names the report and its folder

_SUFFIXES = {f"{_PROJECTION}{end}": _THUNKS for end in (".parquet", "/trace.parquet")}
_SUFFIXES |= {".json": _KINETO, ".json.gz": _KINETO, ".xplane.pb": _XPLANE, ".parquet": _PASSES, ".et": _CHAKRA}
_SUFFIXES |= {"thunks.csv": _THUNKS, "thunks.csv.gz": _THUNKS, ".sqlite": _NSYS}
ROUNDING_NS = 1000
"""By which marks of steps that follow each other may overlap: Kineto rounds starts and lengths."""
_OF_NSYS = (".nsys-rep", ".qdrep")  # reports of Nsight Systems, which it alone reads


def load_trace(paths: Sequence[str | Path], progress: Callable[[str], None] = lambda stage: None) -> Trace:
    """Read all ranks of one run, or those that are at hand.

    Args:
        paths: files or folders, all of one format.
        progress: called with what is being read.

    Raises:
        NotFoundError: a path does not exist, or a folder holds no trace.
        BadInputError: a file is cut off or damaged, formats are mixed, or two files are of one rank.
        InsufficientEvidenceError: a file holds no device activity.
    """
    from asap.traces.collectives import align, match

    files = [file for path in paths for file in trace_files(path)]
    formats = {_format(file) for file in files}
    if len(formats) > 1:
        raise BadInputError(f"are traces of several formats: {', '.join(sorted(formats))}", hint="give one run")
    (found,) = formats
    ranks: list[RankTrace] = []
    for file in files:
        progress(f"reading {file.name}")
        read = _read(file, found)
        ranks += _numbered_on(read, ranks) if found in (_XPLANE, _NSYS) else read
    ranks.sort(key=lambda rank: rank.rank)
    if found == _NSYS:
        ranks = _with_members(ranks)
    for one, other in pairwise(ranks):
        if one.rank == other.rank:
            hint = "give the files of one run, a file a rank"
            raise BadInputError(f"two files are of rank {one.rank}", hint=hint)
    ranks, started = _settled(ranks)
    matched = match(ranks)
    ranks, spread = align(ranks, matched)
    origin = min(rank.first for rank in ranks)
    return Trace(found, [rank.shifted(origin) for rank in ranks], spread, (*_notes(ranks), *started), matched)


def _numbered_on(devices: list[RankTrace], before: Sequence[RankTrace]) -> list[RankTrace]:
    """Each file, or slice, counts its devices from zero; what they say of groups holds among those of a file alone."""
    if not {device.rank for device in devices} & {rank.rank for rank in before}:
        return devices
    first = max(rank.rank for rank in before) + 1
    return [
        replace(one, rank=number, collectives=[UNSAID if call.group.ranks else call for call in one.collectives])
        for number, one in enumerate(devices, first)
    ]


def _with_members(ranks: Sequence[RankTrace]) -> list[RankTrace]:
    """Groups that have a name alone, with those of the ranks at hand that take part."""
    members: dict[str, dict[int, None]] = defaultdict(dict)
    for rank in ranks:
        for call in rank.collectives:
            members[call.group.name][rank.rank] = None
    several = {name: tuple(each) for name, each in members.items() if len(each) > 1}
    found = {name: Group(name, f"ranks {each[1] - each[0]} apart", each) for name, each in several.items()}
    calls = [
        [call._replace(group=found.get(call.group.name, call.group)) for call in rank.collectives] for rank in ranks
    ]
    return [replace(rank, collectives=mine) for rank, mine in zip(ranks, calls, strict=True)]


def _settled(ranks: list[RankTrace]) -> tuple[list[RankTrace], list[str]]:
    """All ranks without first steps that hold the start-up on one of them, and what is said of that."""
    count = max(map(_start_up, ranks))
    if not count or any(len(rank.steps) < count + 2 for rank in ranks):
        return ranks, []
    return [rank.since(rank.steps[count].start) for rank in ranks], [after_start_up(count, len(ranks[0].steps))]


def _start_up(rank: RankTrace) -> int:
    """How many first steps hold it, each until the last operation that it launched."""
    from asap.traces.analysis.iterations import step_of_operations

    step, end = step_of_operations(rank), rank.operations.end
    return start_up(
        [max([each.end, *end[step == number].tolist()]) - each.start for number, each in enumerate(rank.steps)]
    )


def _notes(ranks: Sequence[RankTrace]) -> tuple[str, ...]:
    sizes = {rank.world_size for rank in ranks} - {None}
    expected = max((size for size in sizes if size), default=len(ranks))
    ranks_of: dict[str, list[int]] = {}
    for rank in ranks:
        for note in (*rank.notes, *_step_notes(rank)):
            ranks_of.setdefault(note, []).append(rank.rank)
    notes = [
        f"rank {numbers[0]}{f' and {more} more' if (more := len(numbers) - 1) else ''}: {note}"
        for note, numbers in ranks_of.items()
    ]
    if len(ranks) < expected:
        alone = "waiting for other ranks cannot be told from transfer"
        missing = alone if len(ranks) == 1 else "a collective may wait for another rank"
        notes.append(f"{len(ranks)} of {expected} ranks: {missing}")
    return tuple(notes)


def _step_notes(rank: RankTrace) -> list[str]:
    pairs = list(pairwise(rank.steps))
    overlapping = [pair for pair in pairs if pair[1].start < pair[0].end - ROUNDING_NS]
    apart = [pair for pair in pairs if not pair[1].follows(pair[0])]
    notes = []
    if overlapping:
        notes.append(f"steps {_between(overlapping)} overlap: each one's time holds both")
    if apart:
        notes.append(f"no step between {_between(apart)} was recorded")
    return notes


def _between(pairs: Sequence[tuple[Step, Step]]) -> str:
    one, other = pairs[0]
    more = f", and at {len(pairs) - 1} more places," if len(pairs) > 1 else ""
    return f"{plain(one.label, 40)} and {plain(other.label, 40)}{more}"


def _read(file: Path, found: str) -> list[RankTrace]:
    from asap.traces.chakra import read_chakra
    from asap.traces.readers.kineto import read_kineto
    from asap.traces.readers.nsys import read_nsys
    from asap.traces.readers.passes import read_passes
    from asap.traces.readers.thunks import read_thunks
    from asap.traces.readers.xplane import read_xplane

    readers = {_KINETO: read_kineto, _XPLANE: read_xplane, _THUNKS: read_thunks, _PASSES: read_passes}
    ranks = (readers | {_CHAKRA: read_chakra, _NSYS: read_nsys})[found](file)
    return [ranks] if isinstance(ranks, RankTrace) else ranks


def _format(file: Path) -> str:
    for suffix, found in _SUFFIXES.items():
        if file.as_posix().endswith(suffix):
            return found
    hint = EXPORT if file.suffix in _OF_NSYS else EXPECTED
    raise BadInputError("is not a trace by its name", where=plain(file), hint=hint)


def trace_files(path: str | Path) -> list[Path]:
    """The files that a path means: itself, or all traces of a folder; of a log directory its newest run.

    Raises:
        NotFoundError: the path does not exist, or the folder holds no trace.
    """
    path = user_path(path)
    if not exists(path):
        raise NotFoundError("does not exist", where=plain(path), hint=EXPECTED)
    if not path.is_dir():
        return [path]
    path = path / _PROJECTION if (path / _PROJECTION).is_dir() else path
    named = [file for file in path.iterdir() if file.is_file() and file.name.endswith(tuple(_SUFFIXES))]
    files = sorted(named, key=lambda file: [(part.zfill(20), part) for part in re.split(r"(\d+)", file.name)])
    files = [file for file in files if file.suffix != ".parquet"] or files
    if not files and any((path / folder).is_dir() for folder in _LOG_FOLDERS):
        return list(locate(path).files)
    if not files:
        raise NotFoundError("holds no trace", where=plain(path), hint=EXPECTED)
    return files


def is_recording(file: Path) -> bool:
    """Whether a file is a profile or a trace: by its name, and other ``*.json`` by how it begins."""
    if not file.name.endswith(tuple(_SUFFIXES)):
        return file.suffix in (".pb", *_OF_NSYS)
    if file.suffix != ".json" or file.name.endswith(".trace.json"):
        return True
    try:
        with file.open("rb") as stream:
            beginning = stream.read(_BEGINNING_BYTES)
    except OSError:
        return False
    return beginning.lstrip().startswith(b"[") or b'"traceEvents"' in beginning


def is_kernel_trace(path: str | Path) -> bool:
    """Whether a path is of a format that only this room reads: all but XPlane, which is a profile, too."""
    if Path(path).suffix in _OF_NSYS:
        return True
    try:
        return all(_format(file) != _XPLANE for file in trace_files(path))
    except AsapError:
        return False


HOSTS_READ = 8
"""Ranks of which the host is read."""

Progress = Callable[[str], None]
_latest: dict[tuple[tuple[str, int, int], ...], Graph] = {}


def read_recording(path: str | Path, progress: Progress | None = None, chip: Chip | None = None) -> Profile:
    """The profile of a run: from an XPlane file, or from the replay of a trace in another format.

    Args:
        path: what :func:`asap.profiles.read_profile` takes, Kineto files, or thunk tables of nsys-jax.
        progress: called with each stage as it begins.
        chip: that ran it, where a trace does not name it.

    Raises:
        NotFoundError: the path does not exist, or holds nothing that was recorded.
        ProfileError, BadInputError: it cannot be read.
        InsufficientEvidenceError: no device did anything in it.
    """
    if is_kernel_trace(path):
        from asap.traces.profile import profile_of

        return profile_of(read_graph(path, progress), str(path), read_hosts(path, progress), chip)
    return read_profile(path, progress=progress)


def read_hosts(path: str | Path, progress: Progress | None = None) -> "dict[int, HostWork]":
    """What the hosts of the first ranks did, of Kineto: the work of ranks is alike, and this reads most of a file."""
    from asap.traces.readers.operators import read_operators

    files = [file for file in trace_files(path) if _format(file) == _KINETO]
    found = {}
    for file in files[:HOSTS_READ]:
        if progress:
            progress(f"reading the host of {file.name}")
        work = read_operators(file)
        found[work.rank] = work
    return found


def read_graph(path: str | Path, progress: Progress | None = None) -> Graph:
    """The execution graph of a run. Reading unchanged files again costs nothing.

    Raises:
        NotFoundError, ProfileError, BadInputError, InsufficientEvidenceError: as :func:`read_recording`.
    """
    from asap.traces.graph.build import build_graph

    said = progress or (lambda stage: None)
    stats = [(str(file), file.stat()) for file in trace_files(path)]
    key = tuple((file, stat.st_size, stat.st_mtime_ns) for file, stat in stats)
    if key not in _latest:
        trace = load_trace([path], said)
        said("building the graph")
        _latest.clear()
        _latest[key] = build_graph(trace)
    return _latest[key]
