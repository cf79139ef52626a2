"""Damage to each store of the user's folder, under each command that may meet it. Counted and printed.

Each case is a fork of this process with a copy of a home in which every store holds something, one of them damaged. A
command of the engine must give its result (exit code 0); any other may refuse with a documented exit code and one line.
"""

import argparse
import codecs
import os
import resource
import selectors
import shutil
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from unittest.mock import patch

from asap.core.files import scratch_folder

RUN = "llama-8b-tensor-16"
OWN = "own-run"
SESSION = "kept"
HERE = Path(__file__).parent
CORPUS = HERE.parent / "tests" / "data" / "hostile"
PROFILE = HERE.parent / "asap" / "experiments" / "bundled" / "cpu-8dev"
RECORD = f"experiments/{OWN}.json"
"""The record that commands are asked of: they may refuse without it."""
STORES = (
    "sessions", "conversations.sqlite", "chroma", "chroma/*/chroma.sqlite3", "chroma/*/*.npz", "chroma/*/*-*.sqlite",
    "own_runs.json", "history/records.jsonl", "knowledge/guide/chunks.jsonl", "chips/own.toml",
    "experiments/other.json", RECORD, "compiled", "remote",
)  # fmt: skip
"""Paths below the home; of several that match, all are damaged."""
ENGINE = {
    "analyze": ("analyze", OWN),
    "predict": ("predict", OWN, "--plan", "data=32 model=8 remat=full"),
    "compare": ("compare", OWN, RUN),
    "optimize": ("optimize", OWN),
    "map write": ("map", "write", OWN),
    "profile kpis": ("profile", "kpis", str(PROFILE)),
    "experiments show": ("experiments", "show", OWN),
}
"""Commands whose result depends on no store but the record."""
SERVICES = {
    "report": ("report", OWN),
    "report html": ("report", OWN, "--html", "page.html"),
    "chat": ("chat", OWN),
    "accuracy ledger": ("accuracy", "ledger"),
    "sessions list": ("sessions", "list"),
    "sessions show": ("sessions", "show", SESSION),
    "sessions verify": ("sessions", "verify", SESSION),
    "sessions export": ("sessions", "export", SESSION),
    "sessions replay": ("sessions", "replay", SESSION),
    "llm cost": ("llm", "cost"),
    "history search": ("history", "search", "FSDP all-gather"),
    "history list": ("history", "list"),
    "history import": ("history", "import", str(CORPUS / "history" / "record-0.json")),
    "knowledge search": ("knowledge", "search", "FSDP all-gather"),
    "knowledge list": ("knowledge", "list"),
    "knowledge ingest": ("knowledge", "ingest", str(CORPUS / "notes" / "note.md"), "--name", "more"),
    "accuracy calibrate": ("accuracy", "calibrate"),
    "experiments list": ("experiments", "list"),
    "experiments add": ("experiments", "add", "new", "--config", str(CORPUS / "maxtext" / "run.yml")),
    "config show": ("config", "show"),
    "config set": ("config", "set", "max_calls", "5"),
    "doctor": ("doctor",),
    "doctor repair": ("doctor", "--repair"),
}
SAID = {"chat": b"bottleneck\noom 1\n"}
"""Standard input of a command."""
COMMANDS = ENGINE | SERVICES
DOCUMENTED = {0, 2, 3, 4, 5, 6}
CACHED = "0" * 16
NOBODY = 65534
_SMALLEST_FILE = 20_000


@dataclass(frozen=True)
class Outcome:
    """How a command ended."""

    store: str
    fault: str
    command: str
    code: int
    warnings: int
    output: str
    errors: str

    @property
    def ok(self) -> bool:
        """A result of the engine; a documented exit code and no traceback of anything else."""
        wanted = {0} if self.command in ENGINE and self.store != RECORD else DOCUMENTED
        said = bool((self.output + self.errors).strip())
        return self.code in wanted and "Traceback" not in self.errors and said


def _nothing(path: Path) -> None:
    """Emptied."""
    if path.is_file():
        path.write_bytes(b"")
    elif path.is_dir():
        for each in path.rglob("*"):
            if each.is_file():
                each.write_bytes(b"")


def _each_file(path: Path, change: Callable[[bytes], bytes]) -> None:
    for each in [path] if path.is_file() else [one for one in path.rglob("*") if one.is_file()]:
        each.write_bytes(change(each.read_bytes()))


def _flipped(data: bytes) -> bytes:
    """One bit in each kilobyte."""
    changed = bytearray(data)
    for at in range(min(100, len(changed) // 2), len(changed), 1024):
        changed[at] ^= 0x10
    return bytes(changed)


def _replaced(path: Path) -> None:
    """A folder where a file belongs, a file where a folder belongs."""
    if path.is_dir():
        shutil.rmtree(path)
        path.write_text("a plain file")
    else:
        path.unlink(missing_ok=True)
        path.mkdir(parents=True)


def _forbidden(path: Path) -> None:
    if path.exists():
        path.chmod(0)


FAULTS: dict[str, Callable[[Path], None]] = {
    "emptied": _nothing,
    "truncated": lambda path: _each_file(path, lambda data: data[: len(data) // 2]),
    "corrupt": lambda path: _each_file(path, _flipped),
    "garbage": lambda path: _each_file(path, lambda data: b"\xff\xfe\x00{]" * 50),
    "surrogate": lambda path: _each_file(path, lambda data: b'{"schema": "\\ud800", "id": "\\ud800"}\n'),
    "replaced": _replaced,
    "forbidden": _forbidden,
}
HOMES = ("no space", "no permission", "locked", "no UTF-8", "plain file", "300 characters", "missing")
"""Faults of the home as a whole."""


def prepared_home(folder: Path, start: Path | None = None) -> Path:
    """A home in which every store holds something; with what is in the home to start from, such as search indexes."""
    from asap.experiments import ExperimentStore
    from asap.prediction.uncertainty.calibration import load_calibration
    from asap.prediction.uncertainty.own_runs import OwnRun, OwnRuns, keep_own_runs

    home = folder / "home"
    if start is not None:
        shutil.copytree(start, home)
    with patch.dict(os.environ, {"ASAP_HOME": str(home)}):
        bundled = ExperimentStore().get(RUN)
        for name in (OWN, "other"):
            ExperimentStore().add(bundled.model_copy(update={"id": name}))
        run = OwnRun(
            id="1",
            origin="x",
            stack="v5e, other",
            model="m",
            setting="0",
            step_time_s=1.0,
            predicted_s=1.0,
            residual=0.0,
        )
        keep_own_runs(OwnRuns(calibrated=load_calibration().date, runs=(run,)))
        chip = (Path(sys.modules["asap"].__path__[0]) / "hardware" / "chips" / "v5e.toml").read_text(encoding="utf-8")
        (home / "chips").mkdir()
        (home / "chips" / "own.toml").write_text(chip.replace('"v5e"', '"own9"', 1), encoding="utf-8")
        (folder / "guide.md").write_text("# Guide\n\n## FSDP\n\nAll-gather of the parameters, in our own words.\n")
        _add_history()
        analysis = (*ENGINE["analyze"], "--session", SESSION)
        for command in (("knowledge", "ingest", str(folder / "guide.md"), "--name", "guide"), analysis):
            found = _run("", "", " ".join(command[:2]), command, lambda: None)
            assert found.code == 0, found
        for name in ("compiled", "remote"):
            (home / name / CACHED).mkdir(parents=True)
            (home / name / CACHED / "outcome.json").write_text("{}")
    return home


def _add_history() -> None:
    from asap.core.files import data_folder
    from asap.history.files import add_records, read_records

    _, record = next(iter(read_records(data_folder("history_db") / "asap-paper.jsonl")))
    add_records([record.model_copy(update={"id": "own-1", "other_changes": ("own",), "summary": "Own."})])


def cases(
    home: Path, stores: Sequence[str] = STORES, faults: Sequence[str] = (*FAULTS, *HOMES), *, turn: int | None = None
) -> Iterator[Outcome]:
    """Each store with each fault, and the faults of the home as a whole, under each command; or a third of the former,
    in which all stores and all faults are, and all of the latter, under one command in turn."""
    pairs = [(store, fault) for fault in faults if fault in FAULTS for store in stores]
    pairs += [("home", fault) for fault in faults if fault in HOMES]
    names = list(COMMANDS)
    if turn is not None:
        pairs = [pair for n, pair in enumerate(pairs) if pair[0] == "home" or n % 3 == turn % 3]
    turns = [tuple(names)] * len(pairs)
    if turn is not None:
        turns = in_turn(cycle(names[turn % len(names) :] + names[: turn % len(names)]), len(pairs))
    for (store, fault), names in zip(pairs, turns, strict=True):
        yield from _with(home, store, fault, names) if store != "home" else _of_home(home, fault, names)


def in_turn(commands: Iterator[str], count: int) -> list[tuple[str, ...]]:
    """One command for each case."""
    return [(next(commands),) for _ in range(count)]


def _with(home: Path, store: str, fault: str, names: Sequence[str]) -> Iterator[Outcome]:
    for name in names:
        with scratch_folder("faults") as folder:
            folder.chmod(0o755)
            copy = shutil.copytree(home, folder / "home")
            for each in sorted(copy.glob(store)) or [copy / store]:
                FAULTS[fault](each)
            yield _run(store, fault, name, COMMANDS[name], _user(copy, drop=fault == "forbidden"))
            _unlock(copy)


def _of_home(home: Path, fault: str, names: Sequence[str]) -> Iterator[Outcome]:
    """A home that is no folder to write to; commands run on a bundled run there."""
    for name in names:
        with scratch_folder("faults") as folder:
            folder.chmod(0o755)
            bundled = tuple(RUN if part == OWN else part for part in COMMANDS[name])
            kept = fault in {"no space", "no permission", "locked"}
            copy = Path(shutil.copytree(home, folder / "home")) if kept else folder / "home"
            yield _run("home", fault, name, COMMANDS[name] if kept else bundled, _fault_of_home(copy, fault))
            _unlock(copy)


def _fault_of_home(home: Path, fault: str) -> Callable[[], None]:
    if fault == "plain file":
        home.write_text("a plain file")
    place = {
        "no UTF-8": os.fsdecode(os.fsencode(home) + b"-\xff\xfe"),
        "300 characters": str(home) + "x" * 300,
    }.get(fault, str(home))

    def prepare() -> None:
        os.environ["ASAP_HOME"] = place
        if fault == "no space":
            resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
        if fault == "no permission":
            _user(home, drop=True, writable=False)()
        if fault == "locked":
            _hold_locks(home)

    return prepare


def _hold_locks(home: Path) -> None:
    """Every lock of the home is held by somebody else, and nobody waits for long."""
    import sqlite3

    import filelock

    held = []
    for path in [one for one in home.rglob("*.sqlite") if one.is_file()]:
        database = sqlite3.connect(path, isolation_level=None)
        with suppress(sqlite3.Error):
            database.execute("BEGIN EXCLUSIVE")
        held.append(database)

    def acquire(self: filelock.BaseFileLock, *arguments: object, **options: object) -> None:
        raise filelock.Timeout(self.lock_file)

    filelock.FileLock.acquire = acquire  # type: ignore[method-assign]
    sys.modules["asap"].__dict__["_held"] = held


def _user(home: Path, *, drop: bool, writable: bool = True) -> Callable[[], None]:
    """Works in a home; as nobody where permissions must count, which they do not for root."""

    def prepare() -> None:
        os.environ["ASAP_HOME"] = str(home)
        if drop and os.geteuid() == 0:
            if writable:
                for each in (home, *home.rglob("*")):
                    os.chown(each, NOBODY, NOBODY)
            else:
                for each in (home, *home.rglob("*")):
                    each.chmod(0o755 if each.is_dir() else 0o644)
            os.environ["HOME"] = "/nonexistent"
            os.setegid(NOBODY)
            os.seteuid(NOBODY)

    return prepare


def _unlock(home: Path) -> None:
    for each in home.rglob("*"):
        if not each.is_symlink():
            each.chmod(0o700)


def _run(store: str, fault: str, name: str, command: tuple[str, ...], prepare: Callable[[], None]) -> Outcome:
    """Run a command in a fork of this process, in a folder of its own."""
    (read_out, out), (read_err, err) = os.pipe(), os.pipe()
    with scratch_folder("faults") as folder:
        folder.chmod(0o777)
        child = os.fork()
        if not child:
            os.chdir(folder)
            _become(command, prepare, out, err, SAID.get(name, b""))
        for end in (out, err):
            os.close(end)
        output, errors = _read({read_out: bytearray(), read_err: bytearray()})
        _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    return Outcome(store, fault, name, code, errors.count("asap: "), output, errors)


def _read(found: dict[int, bytearray]) -> list[str]:
    with selectors.DefaultSelector() as ready:
        for each in found:
            ready.register(each, selectors.EVENT_READ)
        while ready.get_map():
            for key, _ in ready.select():
                data = os.read(key.fd, 65536)
                found[key.fd] += data
                if not data:
                    ready.unregister(key.fd)
                    os.close(key.fd)
    return [data.decode(errors="replace") for data in found.values()]


def _become(command: tuple[str, ...], prepare: Callable[[], None], out: int, err: int, said: bytes) -> None:
    code = 70
    try:
        reading, writing = os.pipe()
        os.write(writing, said)
        os.close(writing)
        for number, end in enumerate((reading, out, err)):
            os.dup2(end, number)
        sys.stdin, sys.stdout, sys.stderr = os.fdopen(0, "r"), os.fdopen(1, "w"), os.fdopen(2, "w")
        prepare()
        from asap.cli import main

        sys.argv = ["asap", *command]
        try:
            main()
            code = 0
        except SystemExit as stop:
            code = int(stop.code or 0)
    except BaseException:
        traceback.print_exc()
    finally:
        with suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def preload() -> None:
    """Import what the commands import, so that each fork has it."""
    codecs.lookup("unicode-escape")
    import scipy.special  # noqa: F401

    import asap.agents.workflow.adk_run
    import asap.agents.workflow.analyze
    import asap.cli.app
    import asap.doctor.report
    import asap.history.index_warmup
    import asap.knowledge.index.vectors
    import asap.prediction.predict_study
    import asap.profiles.reading
    import asap.reports.terminal
    import asap.traces.chakra
    import asap.traces.readers.kineto
    import asap.traces.readers.passes
    import asap.traces.readers.thunks  # noqa: F401


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--store", action="append", default=[])
    parser.add_argument("--fault", action="append", default=[])
    parser.add_argument("--in-turn", action="store_true", help="one command for each fault")
    parser.add_argument("--turn", type=int, default=0, help="of --in-turn: how many commands to begin later")
    parser.add_argument("--home", type=Path, help="a home to start from (default: an empty one)")
    options = parser.parse_args()
    preload()
    found: list[Outcome] = []
    with scratch_folder("faults") as folder:
        home = prepared_home(folder, options.home)
        stores, faults = options.store or STORES, options.fault or (*FAULTS, *HOMES)
        for one in cases(home, stores, faults, turn=options.turn if options.in_turn else None):
            found.append(one)
            if not one.ok:
                last = (one.errors.strip().splitlines() or [""])[-1]
                print(f"{one.store:28} {one.fault:14} {one.command:18} {one.code:4} {last[:150]}", flush=True)
    codes = sorted(Counter((one.command in ENGINE, one.code) for one in found).items())
    wrong = sum(not one.ok for one in found)
    print(f"{len(found)} cases, {wrong} not as they should be; (engine, exit code), cases: {codes}")
    sys.exit(any(not one.ok for one in found))


if __name__ == "__main__":
    main()
