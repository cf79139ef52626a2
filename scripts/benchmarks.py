"""Benchmarks by name. Every figure is a median; peers are measured in turn with us, in the same run."""

import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from asap.hardware import Slice
    from asap.models import Architecture, Workload
    from asap.plans import Plan

ROOT = Path(__file__).resolve().parent.parent
ASAP = Path(sys.executable).parent / "asap"
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
    """``asap analyze`` of a bundled experiment from cold, with the built-in model; and on a machine with no index."""
    command = [str(ASAP), "analyze", "paper-v5p-512", "--format", "json"]
    with tempfile.TemporaryDirectory() as folder:
        homes = [os.environ | {"ASAP_HOME": f"{folder}/{number}"} for number in range(3)]
        first = statistics.median(_run(command, home) for home in homes)
        seconds = statistics.median(_run(command, homes[0]) for _ in range(RUNS))
    return {"seconds": seconds, "limit_seconds": 4.0, "new_machine_seconds": first}


def profile_adapter() -> Result:
    """Reading a profile of a TPU against the bare XProf conversion of the same tools, in one process.

    600,000 events of four devices in 14 MB: real recordings are as large or larger. ``ASAP_BENCH_PROFILE`` is the
    path of another one.
    """
    from asap.profiles import locate
    from asap.profiles.reading import read_run
    from asap.profiles.xprof.converter import convert_bare

    with tempfile.TemporaryDirectory() as folder:
        run = locate(os.environ.get("ASAP_BENCH_PROFILE") or _synthetic_profile(Path(folder)))
        return _calls(lambda: read_run(run, lambda stage: None), lambda: convert_bare(run.files), 0.10, runs=3)


def _synthetic_profile(folder: Path) -> Path:
    sys.path.insert(0, str(ROOT / "tests" / "profiles"))
    from xspaces import TRAINING, tpu_profile  # pyright: ignore[reportMissingImports]

    copies = 50
    operations = [
        replace(operation, name=f"{operation.name}{copy}", us=operation.us // copies)
        for copy in range(copies)
        for operation in TRAINING
    ]
    path = folder / "host.xplane.pb"
    path.write_bytes(tpu_profile(operations, devices=4, steps=600))
    return path


def knowledge_cold() -> Result:
    """``asap knowledge search`` from cold, the index being written already."""
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"ASAP_HOME": folder}
        command = [str(ASAP), "knowledge", "search", "all-reduce dominates the step"]
        _run(command, environment)
        return {"seconds": statistics.median(_run(command, environment) for _ in range(RUNS)), "limit_seconds": 1.0}


def knowledge_build() -> Result:
    """Writing the bundled index anew."""
    with _home():
        from asap.knowledge import rebuild

        return {"seconds": _time(rebuild), "limit_seconds": 5.0}


def knowledge_query() -> Result:
    """A hybrid query over 2,000 notes, then one over 5,000 records, both warm."""
    return _warm_query(2_000, 5_000, 0.010)


def knowledge_query_large() -> Result:
    """A hybrid query over 20,000 ingested chunks, warm."""
    return _warm_query(20_000, 0, 0.050)


def predict_one() -> Result:
    """One plan with its intervals and parts, warm."""
    from asap.plans import Plan
    from asap.prediction import predict

    decoder = _decoder()
    plan = Plan.parse("data=64 model=8 remat=full")
    return {"seconds": _median(lambda: predict(plan, *decoder)), "limit_seconds": 0.010}


def predict_space() -> Result:
    """Every plan of 512 devices over six axes as ``asap predict`` prints it, with parts and intervals, warm."""
    from asap.prediction import predict

    plans, decoder = _plans(), _decoder()
    return {"plans": len(plans), "seconds": _median(lambda: predict(plans, *decoder))}


def step_model_rate() -> Result:
    """The formulas of time and memory alone, over the same plans as arrays: plans a second on one core."""
    from asap.prediction import load_calibration
    from asap.prediction.step_model.encoding import step_inputs
    from asap.prediction.step_model.groups import Groups
    from asap.prediction.step_model.memory import memory
    from asap.prediction.step_model.step import predict_step

    plans, (architecture, workload, hardware) = _plans(), _decoder()
    inputs = step_inputs(plans, architecture, workload, hardware)
    constants = load_calibration().full.resolve_one(Groups.of(hardware, workload))
    seconds = _median(lambda: (predict_step(inputs, constants), memory(inputs)))
    return {"plans": len(plans), "plans_per_second": len(plans) / seconds, "limit_plans_per_second": 1e6}


def ci_one() -> Result:
    """``asap ci`` of one changed configuration; on a new machine, where the index is not written yet, beside it."""
    return _ci(1, 3.0)


def ci_fifty() -> Result:
    """``asap ci`` of fifty changed configurations of five models, without a profile."""
    return _ci(50, 10.0)


def _ci(count: int, limit: float) -> Result:
    with tempfile.TemporaryDirectory() as folder:
        _pull_request(Path(folder) / "repository", count)
        environment = os.environ | {"ASAP_HOME": str(Path(folder) / "home")}
        command = [str(ASAP), "ci", "--base", "HEAD~1", "--repository", str(Path(folder) / "repository")]
        first = _run(command, environment)
        seconds = statistics.median(_run(command, environment) for _ in range(3))
    return {"seconds": seconds, "limit_seconds": limit, "new_machine_seconds": first}


def _pull_request(folder: Path, count: int) -> None:
    models = ("llama3.1-8b", "llama3.1-70b", "gemma2-27b", "llama2-70b", "mixtral-8x7b")
    config = "model_name: {}\ncompile_topology: v5p-512\nper_device_batch_size: 2\nremat_policy: full\n"
    folder.mkdir()
    git = ["git", "-C", str(folder), "-c", "user.name=bench", "-c", "user.email=bench@example.org"]
    _run([*git, "init", "-q"])
    for mesh in ("ici_fsdp_parallelism: 256\n", "ici_fsdp_parallelism: 64\nici_tensor_parallelism: 4\n"):
        for number in range(count):
            (folder / f"{number}.yml").write_text(config.format(models[number % len(models)]) + mesh)
        _run([*git, "add", "-A"])
        _run([*git, "commit", "-q", "-m", "step"])


def chat_answer() -> Result:
    """An answer of the built-in model in a chat, warm; and the slowest of ten."""
    from chat_answers import warm_answers

    with _home():
        return dict(warm_answers())


def mapping_check() -> Result:
    """Parsing and checking a program of the mapping language."""
    from mapping.language import mapping_check

    return mapping_check()


def mapping_fuzz() -> Result:
    """A hundred thousand programs of the mapping language at random."""
    from mapping.language import mapping_fuzz

    return mapping_fuzz()


def mapping_loop() -> Result:
    """Evaluations that searches need on the tables of the nine algorithms; some need packages that ASAP does not."""
    from mapping.loop import mapping_loop

    return mapping_loop()


def _plans() -> list["Plan"]:
    from asap.plans import AXES, Plan, Remat
    from asap.plans.enumeration import enumerate_plans
    from asap.plans.validity import Constraints

    like = Plan(remat=Remat.FULL)
    return enumerate_plans(Constraints(devices_per_slice=512, slices=1), AXES, like=like)


def _decoder() -> tuple["Architecture", "Workload", "Slice"]:
    from asap.hardware import resolve_hardware
    from asap.models import Architecture, Workload, find_architecture

    architecture = find_architecture("llama2-70b")
    assert isinstance(architecture, Architecture)
    workload = Workload(global_batch=512, sequence_length=4096, framework="MaxText")
    return architecture, workload, resolve_hardware("v5p", "8x8x8").slice


def _warm_query(notes: int, records: int, limit: float) -> Result:
    with _home() as folder:
        from asap.history import HistoryQuery, list_records, search_history
        from asap.history.files import add_records
        from asap.knowledge import ingest, list_notes, search_knowledge

        source = Path(folder) / "source"
        source.mkdir()
        bundled = list_notes()
        for number in range(max(notes - len(bundled), 0)):
            note = bundled[number % len(bundled)]
            (source / f"note-{number}.md").write_text(f"# {note.title} {number}\n\n{note.body}\n")
        ingest(source, "copies")
        known = list_records()
        copies = [
            record.model_copy(update={"id": f"copy-{n}", "summary": f"{record.summary} ({n})"})
            for n, record in ((n, known[n % len(known)]) for n in range(max(records - len(known), 0)))
        ]
        add_records(copies)
        query = "all-reduce of the tensor axis dominates"
        result: Result = {"seconds": _median(lambda: search_knowledge(query)), "limit_seconds": limit}
        if copies:
            asked = HistoryQuery(text=query, chip="v5e", devices=256)
            result["history_seconds"] = _median(lambda: search_history(asked))
        return result


@contextmanager
def _home() -> Iterator[str]:
    before = os.environ.get("ASAP_HOME")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["ASAP_HOME"] = folder
        try:
            yield folder
        finally:
            if before is None:
                del os.environ["ASAP_HOME"]
            else:
                os.environ["ASAP_HOME"] = before


def _median(call: Callable[[], object]) -> float:
    call()
    return statistics.median(_time(call) for _ in range(RUNS))


def _calls(ours: Callable[[], object], peers: Callable[[], object], limit: float, runs: int = RUNS) -> Result:
    ours()
    peers()
    pairs = [(_time(ours), _time(peers)) for _ in range(runs)]
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


def optimize() -> Result:
    """Evaluations that the loop of ``asap optimize`` needs, against random search and optuna on the same tables."""
    from optimization.loop_benchmark import benchmark

    return benchmark()


BENCHMARKS: dict[str, Callable[[], Result]] = {
    "start_help": start_help,
    "start_version": start_version,
    "analyze_bundled": analyze_bundled,
    "profile_adapter": profile_adapter,
    "knowledge_cold": knowledge_cold,
    "knowledge_build": knowledge_build,
    "knowledge_query": knowledge_query,
    "knowledge_query_large": knowledge_query_large,
    "predict_one": predict_one,
    "predict_space": predict_space,
    "step_model_rate": step_model_rate,
    "ci_one": ci_one,
    "ci_fifty": ci_fifty,
    "chat_answer": chat_answer,
    "mapping_check": mapping_check,
    "mapping_fuzz": mapping_fuzz,
    "mapping_loop": mapping_loop,
    "optimize": optimize,
}

if __name__ == "__main__":
    main(sys.argv[1:])
