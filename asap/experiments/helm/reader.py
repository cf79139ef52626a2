"""An experiment from the values of a chart that starts a training job, and what is set with them."""

import shlex
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from asap.core.errors import ConfigError
from asap.core.secrets import redacted
from asap.core.text import plain
from asap.experiments.experiment import Experiment
from asap.experiments.files.documents import Document
from asap.experiments.files.named_file import Brought
from asap.experiments.helm.command import with_file
from asap.experiments.helm.release import CONFIGURATION, LAUNCHER, Release, is_value, release_of
from asap.experiments.helm.set_values import with_set
from asap.experiments.launch.job import with_devices
from asap.experiments.launch.launch import Launch
from asap.experiments.launch.script import read_launch
from asap.experiments.unread_texts import PROGRAMS, refuse_text
from asap.flags.environment import is_performance_variable

_DOCUMENTS = (".yaml", ".yml", ".json")
ReadStart = Callable[[str | Launch, Path, list[str], Experiment, Brought], Experiment | None]
"""The reader of a script, or of a start of MaxText, with overrides, what is known besides and files beside it."""
ReadDocument = Callable[[Document, list[str], Experiment], Experiment]
"""The reader of a configuration of any stack, with overrides and what is known besides."""


def read_helm(
    values: Mapping[str, Any],
    path: Path,
    overrides: Iterable[str],
    experiment: Experiment,
    read_start: ReadStart,
    read_document: ReadDocument,
    machine: str | None = None,
) -> Experiment:
    """``experiment`` with the configuration of a chart, or with what its launcher starts.

    MaxText's launcher says more than the configuration that it takes; others hand arguments on to it alone.

    Args:
        values: of the chart.
        path: the file that has them, or the script that gives them.
        overrides: ``workload.gpus=64`` and ``workload_config=FILE`` as Helm takes them, and those of the stack.
        experiment: what is known besides.
        read_start: of what the launcher starts.
        read_document: of the configuration.
        machine: of the chart, where its values say none.

    Raises:
        ConfigError: neither is there, or what they say is not read.
        UsageError: an override is not ``key=value``.
    """
    said: dict[str, Any] = dict(values)
    others: list[str] = []
    for override in overrides:
        key = override.partition("=")[0]
        if not is_value(key):
            others.append(override)
        else:
            said = with_file(said, override, path) if "." not in key else with_set(said, override, "override")
    release = release_of(said, path)
    known = _with_environment(
        release, path, with_devices(release.gpus or 0, release.machine or machine, experiment, str(path))
    )
    given = {override.partition("=")[0] for override in others}
    arguments = [argument for argument in release.arguments if argument.partition("=")[0] not in given]
    return _read_launcher(release, arguments, others, known, read_start) or _read_configuration(
        release, path, [*arguments, *others], known, read_document
    )


def _read_launcher(
    release: Release, arguments: list[str], overrides: list[str], experiment: Experiment, read: ReadStart
) -> Experiment | None:
    if release.launcher is None:
        return None
    exports = "; ".join(f"export {name}={shlex.quote(value)}" for name, value in release.environment.items())
    script = f"{exports}; set -- {shlex.join(arguments)}\n{release.launcher.text}"
    brought = {release.mounted: release.configuration.text} if release.configuration else {}
    launch = read_launch(script)
    if launch is not None:
        handed_on = tuple(key for key in launch.unknown if not key.startswith("$"))
        own = {override.partition("=")[0] for override in launch.overrides}
        more = (argument for argument in arguments if argument.partition("=")[0] not in own)
        launch = replace(launch, overrides=(*launch.overrides, *more), unknown=handed_on)
        return read(launch, release.launcher.path, overrides, experiment, brought)
    if release.configuration is not None and release.configuration.path.suffix in _DOCUMENTS:
        return None
    found = read(script, release.launcher.path, overrides, experiment, brought)
    if found is None or not arguments:
        return found
    note = f"not read: arguments that the chart gives the launcher: {plain(' '.join(arguments), 120)}"
    return found.model_copy(update={"notes": (*found.notes, note)})


def _read_configuration(
    release: Release, path: Path, overrides: list[str], experiment: Experiment, read: ReadDocument
) -> Experiment:
    file, launcher = release.configuration, release.launcher
    if launcher is not None and (file is None or file.path.suffix not in _DOCUMENTS):
        refuse_text(PROGRAMS, file.text if file else "", file.path if file else path)
        hint = f"add {CONFIGURATION}=FILE.yaml where one says the run, or give the model, --hardware and --plan"
        raise ConfigError("starts no training that is read", where=str(launcher.path), hint=hint)
    if file is None:
        said = release.mounted.rpartition("/")[2]
        reason = f"holds the values of a Helm chart, whose {plain(said, 60)} is not beside it"
        hint = f"add {CONFIGURATION}=FILE or {LAUNCHER}=FILE, as helm has them with --set-file"
        raise ConfigError(reason, where=str(path), hint=hint)
    if file.path.suffix not in _DOCUMENTS:
        refuse_text(PROGRAMS, file.text, file.path)
        hint = f"add {LAUNCHER}=FILE, as helm has it with --set-file"
        raise ConfigError("is a program, and its launcher starts nothing that is read", where=str(file.path), hint=hint)
    return read(file.document(), overrides, experiment)


def _with_environment(release: Release, path: Path, experiment: Experiment) -> Experiment:
    """With the variables of the containers that flags of compilers and runtimes are in."""
    found = {name: redacted(value) for name, value in release.environment.items() if is_performance_variable(name)}
    sources = {f"environment.{name}": path.name for name in found}
    update = {"environment": found | experiment.environment, "provenance": experiment.provenance | sources}
    return experiment.model_copy(update=update)
