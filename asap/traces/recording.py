"""What was recorded of a run, read once: its execution graph, and the profile that it makes."""

from collections.abc import Callable
from pathlib import Path

from asap.hardware import Chip
from asap.profiles import Profile, read_profile
from asap.traces.graph.build import build_graph
from asap.traces.graph.graph import Graph
from asap.traces.load import is_kernel_trace, load_trace, trace_files
from asap.traces.profile import profile_of
from asap.traces.readers.operators import HostWork, read_operators

HOSTS_READ = 8
"""Ranks of which the host is read."""

_KINETO = (".json", ".json.gz")
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
        return profile_of(read_graph(path, progress), str(path), _hosts(path, progress), chip)
    return read_profile(path, progress=progress)


def _hosts(path: str | Path, progress: Progress | None) -> dict[int, HostWork]:
    """What the hosts of the first ranks did, of Kineto: the work of ranks is alike, and this reads most of a file."""
    files = [file for file in trace_files(path) if file.name.endswith(_KINETO)]
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
    said = progress or (lambda stage: None)
    stats = [(str(file), file.stat()) for file in trace_files(path)]
    key = tuple((file, stat.st_size, stat.st_mtime_ns) for file, stat in stats)
    if key not in _latest:
        trace = load_trace([path], said)
        said("building the graph")
        _latest.clear()
        _latest[key] = build_graph(trace)
    return _latest[key]
