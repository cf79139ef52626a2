"""Processor time and memory of reading profiles for ``asap profile kpis``, against XProf converting the same files.

Each is a process of its own: both figures hold its start and all that it imports, ours with numpy and pydantic, XProf's
with its C++ library alone. Python's bytecode is cached, as it is once a command has run.
Recordings of 10, 20 and 40 MB are repetitions of smaller ones, of a TPU, a CPU and a GPU. ``ASAP_BENCH_PROFILES`` names
others, by which they are replaced; many hosts are links to one recording.
"""

import gzip
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from asap.profiles.xplane.wire import BYTES, Data, Place, fields, text
from benchmarks.engine import ROOT
from benchmarks.timing import Result

MEGABYTES = (10, 20, 40)
RUNS = 3
HOSTS = 64

_MEASURED = """
import json, os, re, sys, time
begin = time.perf_counter()
{work}
peak = re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]
used = os.times()
print(json.dumps([sum(used[:4]), 1024 * int(peak), time.perf_counter() - begin]))"""
_OURS = "from asap.profiles import read_profile; read_profile(sys.argv[1])"
_XPROF = """
import os, sys, tempfile
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
from xprof.convert import _pywrap_profiler_plugin as plugin
with tempfile.TemporaryDirectory() as fresh:
    os.symlink(sys.argv[1], fresh + "/x.xplane.pb")
    for tool in ("overview_page", "roofline_model", "memory_profile", "hlo_stats", "kernel_stats"):
        plugin.xspace_to_tools_data([fresh + "/x.xplane.pb"], tool, {})"""
"""In a folder of its own, where none of its results are cached."""


def profile_kpis() -> Result:
    """The median ratio for each device and size: processor time, peak memory."""
    return {
        f"{path.stem.partition('.')[0]} {path.stat().st_size / 1e6:.0f} MB": _against_xprof(path)
        for path in _recordings()
    }


def profile_hosts() -> Result:
    """The same for a folder of 64 hosts, each of the smallest size; and the time that passes."""
    with tempfile.TemporaryDirectory() as folder:
        found: Result = {}
        for path in _recordings(MEGABYTES[:1]):
            hosts = Path(folder) / path.name
            hosts.mkdir()
            for number in range(HOSTS):
                hosts.joinpath(f"{number}.xplane.pb").symlink_to(path)
            seconds, peak, passed = _cost(_OURS, hosts)
            found[path.stem.partition(".")[0]] = {"processor_seconds": seconds, "peak_bytes": peak, "seconds": passed}
        return found


def _against_xprof(path: Path) -> Result:
    pairs = [(_cost(_OURS, path), _cost(_XPROF, path)) for _ in range(RUNS)]
    medians = [statistics.median(ours[which] / theirs[which] for ours, theirs in pairs) for which in range(2)]
    return {
        "processor_time_ratio": medians[0],
        "limit_processor_time_ratio": 0.25,
        "memory_ratio": medians[1],
        "limit_memory_ratio": 0.3,
        "peak_bytes": pairs[0][0][1],
        "peer_peak_bytes": pairs[0][1][1],
    }


def _cost(work: str, path: Path) -> list[float]:
    """Processor seconds of the process and those that it started, bytes at its peak, and seconds that passed."""
    command = [sys.executable, "-c", _MEASURED.format(work=work), str(path)]
    cached = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True, env=cached).stdout)


def _recordings(megabytes: tuple[int, ...] = MEGABYTES) -> Iterator[Path]:
    given = [Path(path) for path in os.environ.get("ASAP_BENCH_PROFILES", "").split(os.pathsep) if path]
    with tempfile.TemporaryDirectory() as folder:
        for source in given or _sources():
            name, data = source if isinstance(source, tuple) else (source.stem.partition(".")[0], source.read_bytes())
            again = len(repeated(data, 2)) - len(data)
            for size in megabytes:
                path = Path(folder) / f"{name}.{size}.xplane.pb"
                path.write_bytes(repeated(data, 1 + max(round((size * 1e6 - len(data)) / again), 0)))
                yield path
                path.unlink()


def _sources() -> Iterator[tuple[str, bytes]]:
    sys.path.insert(0, str(ROOT / "tests" / "profiles"))
    from xspaces import TRAINING, tpu_profile  # pyright: ignore[reportMissingImports]

    recorded = ROOT / "asap" / "experiments" / "bundled" / "cpu-8dev"
    yield "tpu", tpu_profile(TRAINING * 50, devices=4, steps=20, step_us=50_000)
    yield "cpu", next(recorded.rglob("*.xplane.pb")).read_bytes()
    yield "gpu", gzip.decompress((ROOT / "tests/data/profiles/h100_cuda_graphs.xplane.pb.gz").read_bytes())


_PLANE, _LINE, _EVENT, _STAT_NAMES = 1, 3, 4, 5
_OFFSET, _STAT = 2, 4
_DEVICE_OFFSET = "device_offset_ps"
_NUMBERED = ("step_num", "group_id", "run_id", "correlation_id")
_NUMBERS_APART = 1_000_000
_PAUSE_PS = 10**9


def repeated(data: bytes, times: int) -> bytes:
    """A recording that runs so many times, one after the other: steps, runs and launches are numbered anew."""
    whole = Place(0, len(data))
    span = max(
        (_end(data, line) for plane in _parts(data, whole, _PLANE) for line in _parts(data, plane, _LINE)), default=0
    )
    out = bytearray()
    for number, kind, value, inside in fields(data, whole):
        content = _plane(data, inside, times, span + _PAUSE_PS) if number == _PLANE else data[inside.begin : inside.end]
        out += _field(number, kind, value, content)
    return bytes(out)


def _parts(data: Data, place: Place, wanted: int) -> Iterator[Place]:
    return (inside for number, kind, _, inside in fields(data, place) if (number, kind) == (wanted, BYTES))


def _end(data: Data, line: Place) -> int:
    """The last picosecond of a line."""
    last = 0
    for event in _parts(data, line, _EVENT):
        found = {number: value for number, _, value, _ in fields(data, event)}
        last = max(last, found.get(_OFFSET, 0) + found.get(3, 0))
    return last


def _plane(data: Data, place: Place, times: int, span: int) -> bytes:
    later = {
        key: _NUMBERS_APART if name in _NUMBERED else span
        for entry in _parts(data, place, _STAT_NAMES)
        for key, name in _named(data, entry)
        if name in (*_NUMBERED, _DEVICE_OFFSET)
    }
    out = bytearray()
    for number, kind, value, inside in fields(data, place):
        content = _line(data, inside, times, span, later) if number == _LINE else data[inside.begin : inside.end]
        out += _field(number, kind, value, content)
    return bytes(out)


def _named(data: Data, entry: Place) -> Iterator[tuple[int, str]]:
    """Number and name of a statistic."""
    for value in _parts(data, entry, 2):
        found = {number: (integer, inside) for number, _, integer, inside in fields(data, value)}
        if 1 in found and 2 in found:
            yield found[1][0], text(data, found[2][1])


def _line(data: Data, place: Place, times: int, span: int, later: dict[int, int]) -> bytes:
    out = bytearray()
    for number, kind, value, inside in fields(data, place):
        if number != _EVENT:
            out += _field(number, kind, value, data[inside.begin : inside.end])
    for copy in range(times):
        for event in _parts(data, place, _EVENT):
            out += _field(_EVENT, BYTES, 0, _event(data, event, copy, span, later))
    return bytes(out)


def _event(data: Data, place: Place, copy: int, span: int, later: dict[int, int]) -> bytes:
    out, has_offset = bytearray(), False
    for number, kind, value, inside in fields(data, place):
        content = data[inside.begin : inside.end]
        if number == _OFFSET:
            value, has_offset = value + copy * span, True
        elif number == _STAT:
            content = _stat(data, inside, copy, later)
        out += _field(number, kind, value, content)
    return bytes(out if has_offset or not copy else out + _field(_OFFSET, 0, copy * span, b""))


def _stat(data: Data, place: Place, copy: int, later: dict[int, int]) -> bytes:
    parts = list(fields(data, place))
    if not copy or parts[0][2] not in later:
        return data[place.begin : place.end]
    return b"".join(
        _field(n, kind, value + copy * later[parts[0][2]] if n in (3, 4) else value, data[inside.begin : inside.end])
        for n, kind, value, inside in parts
    )


def _field(number: int, kind: int, value: int, content: bytes) -> bytes:
    tag = _varint(number << 3 | kind)
    if kind == BYTES:
        return tag + _varint(len(content)) + content
    return tag + (_varint(value) if kind == 0 else content)


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)
