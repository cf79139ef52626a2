"""Traces of PyTorch: loading them, the memory that takes, and predictions from a graph of a million nodes.

The trace is a made one of 500,000 events; ``ASAP_BENCH_TRACE`` is the path of another ``json.gz``.
"""

import gzip
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.timing import Result, calls, median

STEPS, LAUNCHES, OPERATORS = 50, 2_000, 3
"""Made trace: of each step, launches; of each launch, operators of the host that nothing reads."""

_PEAK = "import re, sys; {load}; print(re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1])"
"""Of the process alone: ``ru_maxrss`` begins with what the process that started it had (Linux)."""

_OURS = "from asap.traces.recording import load_trace; load_trace([sys.argv[1]])"
_HTA = """import logging; logging.disable(logging.CRITICAL)
from hta.common.trace import Trace
Trace(trace_files={0: sys.argv[1]}, trace_dir="/").parse_traces(use_multiprocessing=False)"""
_PLAIN = "import gzip, json; json.load(gzip.open(sys.argv[1]))"


def trace_load() -> Result:
    """Reading the columns of a compressed trace against ``json`` reading the same file."""
    from asap.traces.recording import load_trace

    with _trace() as path:
        events = gzip.decompress(path.read_bytes()).count(b'"ph"')
        found = calls(lambda: load_trace([path]), lambda: _read(path), 0.5, runs=3)
    seconds = found["seconds"]
    return {"events": events, "events_per_second": events / seconds if isinstance(seconds, float) else None, **found}


def trace_memory() -> Result:
    """Peak memory of a process that loads a trace, against HolisticTraceAnalysis or, where that is not, ``json``.

    ``ASAP_BENCH_HTA`` is the Python of an environment in which HolisticTraceAnalysis is installed.
    """
    hta = os.environ.get("ASAP_BENCH_HTA")
    with _trace() as path:
        ours = _peak_bytes(sys.executable, _OURS, path)
        peers = _peak_bytes(hta, _HTA, path) if hta else _peak_bytes(sys.executable, _PLAIN, path)
    peer = "HolisticTraceAnalysis" if hta else "json"
    return {"bytes": ours, "peer": peer, "peer_bytes": peers, "ratio": ours / peers, "limit_ratio": 1.0}


def trace_what_if() -> Result:
    """A change of a loaded graph, with its interval."""
    from asap.traces.graph.build import build_graph
    from asap.traces.recording import load_trace
    from asap.traces.what_if.change import parse_change
    from asap.traces.what_if.predict import predict_change

    with _trace() as path:
        graph = build_graph(load_trace([path]))
    change = parse_change("scale:matmul=0.5")
    seconds = median(lambda: predict_change(graph, [change]))
    nodes = len(graph.measured)
    return {
        "nodes": nodes,
        "seconds": seconds,
        "seconds_per_million_nodes": 1e6 * seconds / nodes,
        "limit_seconds_per_million_nodes": 1.0,
    }


def _peak_bytes(python: str, load: str, path: Path) -> int:
    code = _PEAK.format(load=f"exec({load!r})")
    done = subprocess.run([python, "-c", code, str(path)], check=True, capture_output=True, text=True)
    return 1024 * int(done.stdout.split()[-1])


def _read(path: Path) -> object:
    with gzip.open(path) as file:
        return json.load(file)


@contextmanager
def _trace() -> Iterator[Path]:
    if given := os.environ.get("ASAP_BENCH_TRACE"):
        yield Path(given)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rank0.json.gz"
        with gzip.open(path, "wt", compresslevel=1) as file:
            file.write('{"traceEvents": [' + ",".join(_events()) + "\n]}\n")
        yield path


def _events() -> Iterator[str]:
    """Laid out as by libkineto/src/output_json.cpp."""
    for step in range(STEPS):
        begin = step * LAUNCHES * 20
        yield _event("user_annotation", f"ProfilerStep#{step}", 1, begin, LAUNCHES * 20, {"Ev Idx": step})
        for number in range(LAUNCHES):
            now, correlation = begin + number * 20, step * LAUNCHES + number + 1
            for depth in range(OPERATORS):
                shapes = {"External id": correlation, "Input Dims": [[512, 4096], [4096, 4096]], "Ev Idx": depth}
                yield _event("cpu_op", ("aten::linear", "aten::matmul", "aten::mm")[depth], 1, now, 15 - depth, shapes)
            yield _event("cuda_runtime", "cudaLaunchKernel", 1, now + 5, 4, {"correlation": correlation})
            kernel = {"stream": 7, "device": 0, "correlation": correlation, "grid": [128, 4, 1], "block": [256, 1, 1]}
            yield _event("kernel", "ampere_bf16_s16816gemm_bf16_128x128_ldg8", 7, now + 12, 18, kernel)


def _event(category: str, name: str, thread: int, start: int, length: int, arguments: dict[str, object]) -> str:
    return (
        f'\n  {{\n    "ph": "X", "cat": "{category}", "name": "{name}", "pid": 1, "tid": {thread},\n'
        f'    "ts": {start}.250, "dur": {length},\n    "args": {{\n      {json.dumps(arguments)[1:-1]}\n    }}\n  }}'
    )
