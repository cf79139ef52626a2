"""Benchmarks by name. Every figure is a median; peers are measured in turn with us, in the same run."""

import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ASAP = Path(sys.executable).parent / "asap"
PROFILE = ROOT / "asap" / "experiments" / "bundled" / "cpu-8dev"
RUNS = 7

Result = dict[str, object]


def main(names: list[str]) -> None:
    unknown = set(names) - set(BENCHMARKS)
    if unknown:
        sys.exit(f"scripts/bench: unknown {', '.join(sorted(unknown))}; there are {', '.join(BENCHMARKS)}")
    machine = {"python": platform.python_version(), "cores": os.cpu_count(), "machine": platform.machine()}
    results = {name: BENCHMARKS[name]() for name in names or BENCHMARKS}
    print(json.dumps({"schema": "asap.bench/1", "machine": machine, "results": results}, indent=2))


def start_help() -> Result:
    """``asap --help`` against a bare Typer program with as many commands."""
    from asap.cli.app import app

    groups = [group.typer_instance for group in app.registered_groups if group.typer_instance]
    commands = len(app.registered_commands) + sum(1 + len(group.registered_commands) for group in groups)
    bare = "import typer\napp = typer.Typer(no_args_is_help=True)\n" + "".join(
        f"@app.command()\ndef command{i}(name: str = 'x'):\n    'A command.'\n" for i in range(commands)
    )
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "bare.py"
        program.write_text(f"{bare}\napp()\n")
        return _ratio([str(ASAP), "--help"], [sys.executable, str(program), "--help"], 1.5)


def start_version() -> Result:
    """``asap --version`` against an interpreter that does nothing."""
    return _ratio([str(ASAP), "--version"], [sys.executable, "-c", "pass"], 5.0)


def analyze_bundled() -> Result:
    """``asap analyze`` of a bundled experiment from cold, with the built-in model."""
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"ASAP_HOME": folder}
        command = [str(ASAP), "analyze", "paper-v5p-512", "--format", "json"]
        seconds = statistics.median(_run(command, environment) for _ in range(3))
    return {"seconds": seconds, "limit_seconds": 4.0}


def profile_adapter() -> Result:
    """Reading a profile against the bare XProf conversion of the same tools, in one process.

    For a CPU, XProf has no operations, so the peer walks the bare events as well.
    """
    from asap.profiles import locate, read_profile
    from asap.profiles.conversion import convert_bare
    from asap.profiles.reading import read_run

    run = locate(Path(os.environ.get("ASAP_BENCH_PROFILE", PROFILE)))
    on_cpu = read_profile(run.files[0]).device_type == "CPU"

    def bare() -> None:
        convert_bare(run.files)
        if on_cpu:
            _walk(run.files)

    return _calls(lambda: read_run(run, lambda stage: None), bare, 1.10)


def _walk(files: Sequence[Path]) -> None:
    from jax.profiler import ProfileData

    for file in files:
        for plane in ProfileData.from_file(str(file)).planes:
            for line in plane.lines:
                for event in line.events:
                    _ = event.name, event.start_ns, event.duration_ns, dict(event.stats)


def _calls(ours: Callable[[], object], peers: Callable[[], object], limit: float) -> Result:
    ours()
    peers()
    pairs = [(_time(ours), _time(peers)) for _ in range(RUNS)]
    return _summary(pairs, limit)


def _ratio(ours: list[str], peer: list[str], limit: float) -> Result:
    _run(ours)
    _run(peer)
    return _summary([(_run(ours), _run(peer)) for _ in range(RUNS)], limit)


def _summary(pairs: list[tuple[float, float]], limit: float) -> Result:
    return {
        "seconds": statistics.median(a for a, _ in pairs),
        "peer_seconds": statistics.median(b for _, b in pairs),
        "ratio": statistics.median(a / b for a, b in pairs),
        "limit_ratio": limit,
    }


def _run(command: list[str], environment: dict[str, str] | None = None) -> float:
    return _time(lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment))


def _time(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


BENCHMARKS: dict[str, Callable[[], Result]] = {
    "start_help": start_help,
    "start_version": start_version,
    "analyze_bundled": analyze_bundled,
    "profile_adapter": profile_adapter,
}

if __name__ == "__main__":
    main(sys.argv[1:])
