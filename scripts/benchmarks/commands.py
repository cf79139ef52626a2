"""Commands as a user starts them, questions of a chat, and searches of notes."""

import os
import statistics
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.timing import ASAP, RUNS, Result, home, median, ratio, run, time_of

if TYPE_CHECKING:
    from asap.chat.chat import Chat


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
        return ratio([str(ASAP), "--help"], [sys.executable, str(program), "--help"], 1.5)


def start_version() -> Result:
    """``asap --version`` against an interpreter that does nothing."""
    return ratio([str(ASAP), "--version"], [sys.executable, "-c", "pass"], 5.0)


def analyze_bundled() -> Result:
    """``asap analyze`` of a bundled experiment from cold, with the built-in model; and on a machine with no index."""
    command = [str(ASAP), "analyze", "paper-v5p-512", "--format", "json"]
    with tempfile.TemporaryDirectory() as folder:
        homes = [os.environ | {"ASAP_HOME": f"{folder}/{number}"} for number in range(3)]
        first = statistics.median(run(command, home) for home in homes)
        seconds = statistics.median(run(command, homes[0]) for _ in range(RUNS))
    return {"seconds": seconds, "limit_seconds": 2.5, "new_machine_seconds": first}


def knowledge_cold() -> Result:
    """``asap knowledge search`` from cold, the index being written already."""
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"ASAP_HOME": folder}
        command = [str(ASAP), "knowledge", "search", "all-reduce dominates the step"]
        run(command, environment)
        return {"seconds": statistics.median(run(command, environment) for _ in range(RUNS)), "limit_seconds": 1.0}


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
        first = run(command, environment)
        seconds = statistics.median(run(command, environment) for _ in range(3))
    return {"seconds": seconds, "limit_seconds": limit, "new_machine_seconds": first}


def optimize_overhead() -> Result:
    """What ``asap optimize`` adds to each run of a command that logs its steps at once, its own start left out."""
    log = "for word in {overrides}; do echo Config param ${word%%=*}: ${word#*=}; done"
    steps = 'for i in $(seq 0 29); do echo "completed step: $i, seconds: 0.5$((i % 9)), loss: 3.0"; done'
    decoder = Path(__file__).parents[1] / "optimization" / "decoder.yml"
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"ASAP_HOME": folder}
        run([str(ASAP), "experiments", "add", "small", "--config", str(decoder), "--hardware", "v5e-8"], environment)
        command = [
            str(ASAP),
            "--quiet",
            "optimize",
            "small",
            "--evaluate",
            "run",
            "--command",
            f"{log}; {steps}",
            "--yes",
        ]
        one, nine = (
            statistics.median(run([*command, "--budget", budget], environment) for _ in range(RUNS))
            for budget in ("1", "9")
        )
    return {"seconds": (nine - one) / 8, "limit_seconds": 0.2}


def _pull_request(folder: Path, count: int) -> None:
    models = ("llama3.1-8b", "llama3.1-70b", "gemma2-27b", "llama2-70b", "mixtral-8x7b")
    config = "model_name: {}\ncompile_topology: v5p-512\nper_device_batch_size: 2\nremat_policy: full\n"
    folder.mkdir()
    git = ["git", "-C", str(folder), "-c", "user.name=bench", "-c", "user.email=bench@example.org"]
    run([*git, "init", "-q"])
    for mesh in ("ici_fsdp_parallelism: 256\n", "ici_fsdp_parallelism: 64\nici_tensor_parallelism: 4\n"):
        for number in range(count):
            (folder / f"{number}.yml").write_text(config.format(models[number % len(models)]) + mesh)
        run([*git, "add", "-A"])
        run([*git, "commit", "-q", "-m", "step"])


def knowledge_build() -> Result:
    """Writing the bundled index anew."""
    with home():
        from asap.knowledge import rebuild

        return {"seconds": time_of(rebuild), "limit_seconds": 5.0}


def knowledge_query() -> Result:
    """A hybrid query over 2,000 notes, then one over 5,000 records, both warm."""
    return _warm_query(2_000, 5_000, 0.010)


def knowledge_query_large() -> Result:
    """A hybrid query over 20,000 ingested chunks, warm."""
    return _warm_query(20_000, 0, 0.050)


def _warm_query(notes: int, records: int, limit: float) -> Result:
    with home() as folder:
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
        result: Result = {"seconds": median(lambda: search_knowledge(query)), "limit_seconds": limit}
        if copies:
            asked = HistoryQuery(text=query, chip="v5e", devices=256)
            result["history_seconds"] = median(lambda: search_history(asked))
        return result


QUESTIONS = (
    "what is the bottleneck?",
    "why not tp=8",
    "what if batch=512 seq_len=8192",
    "memory 2",
    "sweep microbatches 1 2 4 8",
    "predict 1",
    "what if chips=128",
    "ran 1 = 7.9s",
    "which one first?",
    "line 1",
)


def chat_answer() -> Result:
    """An answer about a bundled run, and the slowest of ten; warm, as the same ten were asked before."""
    from asap.chat import open_conversation
    from asap.chat.chat import Chat
    from asap.experiments import ExperimentStore
    from asap.sharding_memory import new_session_name

    with home():
        opened = open_conversation("llama-8b-tensor-16", ExperimentStore())
        seconds: list[float] = []
        for _ in range(2):
            chat = Chat(opened.afresh(new_session_name()))
            seconds = [_seconds(chat, question) for question in QUESTIONS]
    return {"seconds": statistics.median(seconds), "slowest_seconds": max(seconds), "limit_seconds": 0.3}


def _seconds(chat: "Chat", question: str) -> float:
    return time_of(lambda: chat.turn(question, lambda piece: None))
