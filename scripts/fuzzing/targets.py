"""What is fuzzed: a table of targets. Each reads what a stranger wrote, the way a user would have it read."""

import json
import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypothesis import reject
from hypothesis import strategies as st

from fuzzing.case import mutated_bytes, mutated_text, run

ROOT = Path(__file__).parents[2]
CORPUS = ROOT / "tests" / "data" / "hostile"
GOLDEN = ROOT / "tests" / "replay" / "golden" / "golden-builtin.jsonl"
EXPERIMENT = "paper-v6e-16"
PREDICT = (
    "predict",
    "--plan",
    "data=32 model=8",
    "--batch",
    "512",
    "--sequence",
    "2048",
    "--hardware",
    "v5e-256",
    "--config",
)

Check = Callable[[Any], object]
Inputs = st.SearchStrategy[Any]


@dataclass(frozen=True)
class Target:
    """Something that reads hostile input.

    Args:
        reads: what it reads.
        prepare: the mutated inputs, and what is done with one of them.
    """

    reads: str
    prepare: Callable[[], tuple[Inputs, Check]]


def _examples(folder: str) -> list[str]:
    return [path.read_text(encoding="utf-8") for path in sorted((CORPUS / folder).iterdir())]


def _file(folder: str, name: str, *arguments: str) -> Callable[[], tuple[Inputs, Check]]:
    """A command over a mutated file."""

    def prepare() -> tuple[Inputs, Check]:
        path = Path(tempfile.mkdtemp(dir=os.environ["ASAP_HOME"])) / name

        def check(case: str | bytes) -> str:
            path.write_bytes(case if isinstance(case, bytes) else case.encode("utf-8", "surrogatepass"))
            return run(*arguments, str(path))

        if name.endswith(".pb"):
            return mutated_bytes([one.read_bytes() for one in (CORPUS / folder).iterdir()]), check
        return mutated_text(_examples(folder)), check

    return prepare


def _lines(folder: str, check: Check) -> Callable[[], tuple[Inputs, Check]]:
    """Something that reads one line."""
    return lambda: (mutated_text([line for text in _examples(folder) for line in text.splitlines()]), check)


def _argument(text: str) -> str:
    """What a shell can hand over."""
    return text.replace("\x00", "").encode("utf-8", "replace").decode()


def _overrides(line: str) -> str:
    terms = [term for term in _argument(line).split() if not term.startswith("-")]
    return run(*PREDICT, str(CORPUS / "maxtext" / "run.yml"), *terms)


def _plan(line: str) -> str:
    return run("predict", EXPERIMENT, f"--plan={_argument(line)}")


def _chat() -> tuple[Inputs, Check]:
    run("analyze", EXPERIMENT, "--session", "fuzzed")
    sessions = Path(os.environ["ASAP_HOME"]) / "sessions"
    analysed = (sessions / "fuzzed.jsonl").read_bytes()

    def check(text: str) -> str:
        (sessions / "fuzzed.jsonl").write_bytes(analysed)
        return run("chat", EXPERIMENT, "--session", "fuzzed", stdin=text)

    return mutated_text([f"{line}\n" for text in _examples("chat") for line in text.splitlines()]), check


def _worklog() -> tuple[Inputs, Check]:
    """One payload is mutated, and all records are sealed again, so that what reads them is reached."""
    from asap.sharding_memory.record import GENESIS, scan, seal

    records = scan(GOLDEN.read_bytes()).records
    payloads = [json.dumps(record.payload) for record in records]
    cases = st.integers(0, len(records) - 1).flatmap(
        lambda at: st.tuples(st.just(at), mutated_text([payloads[at]], most=3))
    )
    path = Path(os.environ["ASAP_HOME"]) / "sessions" / "fuzzed.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(GOLDEN.read_bytes())
    run("sessions", "replay", "fuzzed")  # imports what is heavy once

    def check(case: tuple[int, str]) -> None:
        at, text = case
        try:
            changed = json.loads(text)
            lines, previous = [], GENESIS
            for number, record in enumerate(records):
                payload = changed if number == at else record.payload
                sealed, line = seal(number, record.time, record.kind, payload, previous)
                lines, previous = [*lines, line], sealed.checksum
        except (ValueError, RecursionError):
            reject()
        path.write_bytes(b"".join(lines))
        run("sessions", "show", "fuzzed")
        run("sessions", "export", "fuzzed")
        run("chat", EXPERIMENT, "--session", "fuzzed", stdin="which one first?\n")
        path.write_bytes(b"".join(lines))
        run("sessions", "replay", "fuzzed")

    return cases, check


def _event(text: str) -> None:
    from asap.ci.github.event import read_event
    from asap.core.errors import AsapError

    path = Path(os.environ["ASAP_HOME"]) / "event.json"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    with suppress(AsapError):
        read_event(path)


def _artifact(text: str) -> None:
    from asap.ci.render.workflow import read_artifact, write_artifact
    from asap.core.errors import AsapError

    folder = Path(os.environ["ASAP_HOME"])
    path = folder / "asap-ci.json"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    with suppress(AsapError):
        write_artifact(read_artifact(path), folder / "again")


def _policy(text: str) -> None:
    from asap.ci.source.policy import read_policy
    from asap.core.errors import AsapError

    path = Path(os.environ["ASAP_HOME"]) / "asap.toml"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    with suppress(AsapError):
        read_policy(path)


def _model() -> tuple[Inputs, Check]:
    """The proposal agent answers with mutated words, or with mutated arguments of the tool that it must call."""
    from tests.language_models.misbehaving import Misbehaving, call, say

    answer: list[str] = [""]

    class Mutated(Misbehaving):
        @classmethod
        def supported_models(cls) -> list[str]:
            return ["test/mutated"]

        def instead(self, turn: Any) -> Any:
            with suppress(ValueError, RecursionError):
                if isinstance(found := json.loads(answer[0]), dict):
                    return call("set_model_response", **found)
            return say(answer[0])

    from google.adk.models import LLMRegistry

    LLMRegistry.register(Mutated)
    run("analyze", EXPERIMENT)  # writes the index once

    def check(text: str) -> None:
        answer[0] = text
        run("analyze", EXPERIMENT, "--llm", "test/mutated")
        run("analyze", EXPERIMENT, "--llm", "test/mutated", "--format", "markdown")

    return mutated_text(_examples("models")), check


def _tensorboard() -> tuple[Inputs, Check]:
    """An event file; its checksums stay as they were. It needs the extra ``tensorboard``."""
    folder = Path(tempfile.mkdtemp(dir=os.environ["ASAP_HOME"]))

    def check(data: bytes) -> str:
        (folder / "events.out.tfevents.1").write_bytes(data)
        return run("predict", f"tensorboard:{folder}", "--plan", "data=16 model=4", "--hardware", "v5e-64")

    return mutated_bytes([path.read_bytes() for path in (CORPUS / "tensorboard").iterdir()]), check


def _run_log() -> tuple[Inputs, Check]:
    """The log of a try, and why it died."""
    from asap.optimize.evaluators.run.log import RunLog, why_it_died

    path = Path(os.environ["ASAP_HOME"]) / "log"

    def check(text: str) -> None:
        path.write_bytes(text.encode("utf-8", "surrogatepass"))
        log = RunLog(path, {"per_device_batch_size": "2"}, 4096.0)
        log.read(to_end=True)
        for code in (None, 0, 1, 137):
            why_it_died(log.tail, code, len(log.times))
        assert all(0 < each < float("inf") for each in log.times)

    return mutated_text(_examples("logs")), check


def _launch(line: str) -> str:
    return run(
        "optimize", EXPERIMENT, "--evaluate", "run", "--command", _argument(line), "--budget", _argument(line)[:9]
    )


TARGETS = {
    "maxtext": Target("MaxText configurations", _file("maxtext", "run.yml", *PREDICT)),
    "huggingface": Target("config.json of Hugging Face models", _file("huggingface", "config.json", *PREDICT)),
    "megatron": Target("Megatron-LM launch scripts", _file("megatron", "train.sh", *PREDICT)),
    "nemo": Target("NeMo configurations", _file("nemo", "train.yaml", *PREDICT)),
    "torchtitan": Target("torchtitan configurations", _file("torchtitan", "train.toml", *PREDICT)),
    "deepspeed": Target(
        "DeepSpeed configurations", _file("deepspeed", "ds_config.json", PREDICT[0], "model=llama3.1-8b", *PREDICT[1:])
    ),
    "overrides": Target("key=value on the command line", _lines("overrides", _overrides)),
    "plan": Target("plans as text", _lines("plans", _plan)),
    "experiment": Target(
        "experiment records", _file("experiments", "run.json", "predict", "--batch", "512", "--config")
    ),
    "history": Target("history records", _file("history", "record.json", "history", "add")),
    "note": Target("ingested Markdown", _file("notes", "note.md", "knowledge", "ingest")),
    "worklog": Target("worklogs with valid checksums", _worklog),
    "profile": Target("XSpace profiles", _file("profiles", "host.xplane.pb", "profile", "kpis")),
    "trace": Target("Kineto traces", _file("traces", "rank0.json", "trace", "replay")),
    "tensorboard": Target("event files of TensorBoard", _tensorboard),
    "run-log": Target("logs of a user's command", _run_log),
    "launch": Target("commands and budgets of asap optimize, which nobody agreed to", _lines("launches", _launch)),
    "mapping": Target(
        "mapping programs",
        _file("mappings", "program.map", "map", "check", "--model", "llama2-70b", "--hardware", "v5e:4x4"),
    ),
    "algorithm": Target(
        "mapping programs of algorithms", _file("mappings", "program.map", "map", "check", "--hardware", "v5e:4x4")
    ),
    "event": Target("event files of GitHub", lambda: (mutated_text(_examples("events")), _event)),
    "artifact": Target("artifacts of the check job", lambda: (mutated_text(_examples("artifacts")), _artifact)),
    "policy": Target("policies", lambda: (mutated_text(_examples("policies")), _policy)),
    "model": Target("answers of a language model", _model),
    "chat": Target("chat lines", _chat),
}
