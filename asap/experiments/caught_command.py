"""What a user's own script starts, without starting it: launchers are replaced by stand-ins that write down their call.

The script runs for real, by the user's own hand; only the programs in ``STAND_INS`` do not. Nothing of it is run in CI.
"""

import os
import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from asap.core.errors import AsapError, ConfigError, InsufficientEvidenceError, UnreadError, UsageError
from asap.core.files import scratch_folder
from asap.core.secrets import names_secret, redacted
from asap.core.text import REDACTED, plain
from asap.core.units import format_seconds
from asap.experiments.configuration import read_configuration
from asap.experiments.create import Statement, amend
from asap.experiments.experiment import Experiment
from asap.experiments.other_stacks import read_script
from asap.experiments.shell import SCRIPTS, slurm_variables
from asap.flags.environment import is_performance_variable

STAND_INS = (
    "torchrun", "python", "python3", "accelerate", "deepspeed", "srun", "mpirun", "mpiexec", "sbatch", "tune",
    "composer", "litgpt", "axolotl", "llamafactory-cli", "swift", "megatron", "trl", "xpk", "ray", "helm", "kubectl",
    "docker", "podman", "apptainer", "singularity", "enroot", "ssh", "pdsh", "gcloud", "sudo", "conda", "uv", "poetry",
    "qsub", "bsub", "jsrun", "horovodrun", "runai", "sky",
)  # fmt: skip
"""Programs that start training, or what starts it."""
_FOLDER = "CALLS_CAUGHT_FOR_ASAP"
_MOST = 200
_RENDERED = {  # of what makes manifests: how else to get them
    "helm": "give what helm template prints of the chart, as a file",
    "kubectl": "give what kubectl kustomize prints, or the manifest, as a file",
}
_OF_HELP = (("--help",), ("-h",), ("--version",))
_STAND_IN, _BEFORE = (Path(__file__).with_name(name) for name in ("stand_in.sh", "stand_in_first.sh"))
_ELSEWHERE = ("docker", "podman", "ssh", "pdsh", "kubectl", "gcloud", "sudo")
"""What hands none of its own variables to what it starts."""


@dataclass(frozen=True)
class CaughtCommand:
    """A call of a launcher: its words, and the variables of its environment that decide performance."""

    words: tuple[str, ...]
    environment: Mapping[str, str] = field(compare=False)
    given: str = ""
    """Manifests for Kubernetes, or commands for a shell of another machine, also by its standard input."""

    def __str__(self) -> str:
        return redacted(shlex.join(self.words))

    @property
    def script(self) -> str:
        """The call as a script in which nothing is left open."""
        own = {} if Path(self.words[0]).name in _ELSEWHERE else self.environment
        exports = (f"export {name}={shlex.quote(value)}" for name, value in own.items())
        return "\n".join((*exports, self.given, shlex.join(self.words), ""))


def check_may_run() -> None:
    """Raise UsageError in CI, where nothing of a stranger's is run."""
    if os.environ.get("CI", "").casefold() not in ("", "0", "false"):
        raise UsageError("runs your command, which is never done in CI", where="asap resolve --")


def catch(command: Sequence[str], timeout_s: float = 60.0) -> list[CaughtCommand]:
    """Run a command with stand-ins first on its path; the calls of launchers, in their order.

    Args:
        command: words, as the user typed them.
        timeout_s: seconds after which it is ended.

    Raises:
        UsageError: in CI, or there is no such program.
        ConfigError: it takes too long, or fails before it starts anything.
        InsufficientEvidenceError: it starts nothing that has a stand-in.
    """
    check_may_run()
    where = plain(command[0], 80)
    with scratch_folder("resolve") as folder:
        _write_stand_ins(folder)
        texts = (Path(word).read_text(errors="replace") for word in command[1:] if Path(word).is_file())
        directives = [line for text in texts for line in text.splitlines() if line.startswith("#SBATCH")]
        own = {_FOLDER: str(folder), "BASH_ENV": str(_BEFORE), "OWN_BASH_ENV": os.environ.get("BASH_ENV", "")}
        environment = slurm_variables(" ".join(directives).split(), {}) | os.environ | own
        environment["PATH"] = f"{folder}/bin:{os.environ.get('PATH', os.defpath)}"
        words = list(command)
        if (folder / "bin" / words[0]).exists():
            words[0] = f"{folder}/bin/{words[0]}"
        try:
            done = subprocess.run(words, env=environment, stdin=subprocess.DEVNULL, timeout=timeout_s, check=False)
        except FileNotFoundError as error:
            raise UsageError("no such program", where=where) from error
        except PermissionError as error:
            raise UsageError("is not executable", where=where, hint="write: bash SCRIPT") from error
        except subprocess.TimeoutExpired as error:
            hint = "raise --time-limit, or give the training log"
            raise ConfigError(f"takes over {format_seconds(timeout_s)}", where=where, hint=hint) from error
        found = _read_calls(folder)
    if not found and done.returncode:
        raise ConfigError(f"ends with exit code {done.returncode} before it starts anything", where=where)
    if not found:
        hint = "give the training log instead: `asap analyze train.log`"
        raise InsufficientEvidenceError("starts no launcher that is known", where=where, hint=hint)
    return found


def _write_stand_ins(folder: Path) -> None:
    target = folder / "bin"
    target.mkdir(mode=0o700)
    original = target / ".stand-in"
    shutil.copyfile(_STAND_IN, original)
    original.chmod(0o700)
    for name in STAND_INS:
        (target / name).symlink_to(original)


def _read_calls(folder: Path) -> list[CaughtCommand]:
    order = folder / "order"
    if not order.exists():
        return []
    found = []
    for line in order.read_text(encoding="utf-8", errors="replace").splitlines()[:_MOST]:
        words = _parts(Path(f"{line}.arguments"))
        pairs = (part.partition("=") for part in _parts(Path(f"{line}.environment")))
        variables = {name: redacted(value) for name, _, value in pairs if is_performance_variable(name)}
        text = Path(f"{line}.given").read_text(encoding="utf-8", errors="replace").strip()
        found.append(CaughtCommand(drop_secret_options(words), variables, text))
    return [one for one in found if one.words and one.words[1:2] not in _OF_HELP]


def drop_secret_options(words: Sequence[str]) -> tuple[str, ...]:
    """The words of a call without the values of options that hold secrets: ``--wandb-key VALUE``, ``--token=VALUE``."""
    kept: list[str] = []
    for word in words:
        name, equals, _ = word.partition("=")
        before = kept[-1] if kept else ""
        if before.startswith("--") and "=" not in before and _is_secret(before) and not word.startswith("--"):
            kept.append(REDACTED)
        else:
            kept.append(f"{name}={REDACTED}" if equals and name.startswith("--") and _is_secret(name) else word)
    return tuple(kept)


def _is_secret(option: str) -> bool:
    return names_secret(option) or option.casefold().endswith("key")


def _parts(path: Path) -> list[str]:
    return [part.decode("utf-8", "replace") for part in path.read_bytes().split(b"\0") if part]


def record_of_calls(calls: Sequence[CaughtCommand], id: str, stated: Statement) -> tuple[Experiment, CaughtCommand]:
    """The last of the calls that is read as training, and it; a note says where there are several.

    Args:
        calls: of launchers, made in the folder of this process; what comes first prepares.
        id: of the record.
        stated: what the user says beside it.

    Raises:
        UnreadError: none starts training that is read.
        ConfigError: the settings of the last one contradict each other.
        NotFoundError: the hardware is unknown.
    """
    read, failures = list[tuple[Experiment, CaughtCommand]](), list[AsapError]()
    for call in dict.fromkeys(reversed(calls)):
        try:
            read.append((_record_of(call, id, stated), call))
        except AsapError as error:
            failures.append(error)
    if not read:
        raise next((one for one in failures if not isinstance(one, UnreadError)), failures[0])
    (experiment, last), *others = read
    if not others:
        return experiment, last
    own = redacted(" ".join(word for word in others[0][1].words if word not in last.words))
    note = f"{len(read)} calls start training, and the last is read; the one before it says {plain(own, 200)}"
    return experiment.model_copy(update={"notes": (note, *experiment.notes)}), last


def _record_of(call: CaughtCommand, id: str, stated: Statement) -> Experiment:
    start = amend(Experiment(id=id), Statement(hardware=stated.hardware))
    called, where = Path(Path(call.words[0]).name), plain(f"caught {call}", 120)
    try:
        if call.given and called.name in _RENDERED:
            with scratch_folder("manifests") as folder:
                path = folder / "manifests.yaml"
                path.write_text(call.given, encoding="utf-8")
                return amend(read_configuration(path, (), start), stated)
        found = read_script(call.script, called, (), start)
    except AsapError as error:
        raise type(error)(error.message, where=where, hint=error.hint) from error
    if found is None:
        raise UnreadError("starts no training that is read", where=where, hint=_way_out(call))
    return amend(found, stated)


def _way_out(call: CaughtCommand) -> str:
    """What to give in place of a call that is not read."""
    script = next((word for word in call.words[1:] if word.endswith(SCRIPTS)), None)
    own = f"catch the script in it, `asap resolve -- bash {Path(script).name}`" if script else ""
    own = own or _RENDERED.get(Path(call.words[0]).name, "catch the command that trains")
    return f"give the log of the run, `asap analyze train.log`, or {own}"
