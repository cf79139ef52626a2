"""A configuration file as a mapping with the lines of its keys, and a file that another one names."""

import json
import re
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from asap.core.errors import AsapError, ConfigError, NotFoundError, UnreadError
from asap.core.files import is_file
from asap.core.numbers import bounded_from_text, parse_toml
from asap.core.text import plain
from asap.experiments.files.yaml_text import parse_yaml

_Model = TypeVar("_Model", bound=BaseModel)
LARGEST_BYTES = 1_000_000
_NO_MAPPING = "is no configuration: it holds no keys with values"
_TRAILING = re.compile(r'("(?:\\.|[^"\\])*")|,(?=\s*[}\]])')
"""Commas before the end of an object or a list, which many programs take; texts are skipped."""
_OPEN = re.compile(r'("(?:\\.|[^"\\])*")|(\$(?:\{[^{}"]*\}|\(\([^()"]*\)\)|\([^()"]*\)|\w+))')
"""A value that a script fills in, which stands outside of quotes; texts are skipped."""
_UTF_16 = (BOM_UTF16_LE, BOM_UTF16_BE)
_UNPACK, _COPY = "unpack it, and give the log or configuration in it", "copy its text into a file, and give that"
_NO_TEXT = {
    b"\x89PNG": ("a picture", _COPY), b"\xff\xd8\xff": ("a picture", _COPY), b"%PDF": ("a PDF", _COPY),
    b"PK\x03\x04": ("an archive", _UNPACK), b"\x1f\x8b": ("an archive", _UNPACK), b"\xfd7zXZ": ("an archive", _UNPACK),
}  # fmt: skip
"""How files begin that hold no text, what they are, and what to do."""


@dataclass(frozen=True)
class Document:
    """The values of a file, and the line of each key of its top level."""

    path: Path
    values: dict[str, Any]
    lines: dict[str, int]

    @property
    def is_yaml(self) -> bool:
        """Whether the file is YAML by its name, so that lines to paste into it are."""
        return self.path.suffix in (".yaml", ".yml")

    def place(self, key: str | None = None) -> str:
        """``file:line`` of a key, for errors."""
        line = self.lines.get(key) if key else None
        return f"{self.path}:{line}" if line else str(self.path)


def read_text(path: Path, limit: int = LARGEST_BYTES, kind: str = "configuration") -> str:
    """A small text file, in UTF-8 or, as its first bytes tell, in UTF-16.

    Raises:
        NotFoundError: there is no such file.
        ConfigError: it is too large, not text, or cannot be read.
    """
    try:
        with path.open("rb") as stream:
            raw = stream.read(limit + 1)
    except FileNotFoundError as error:
        raise NotFoundError("no such file", where=str(path)) from error
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}", where=str(path)) from error
    if len(raw) > limit:
        raise ConfigError(f"is larger than {limit:,} bytes: not a {kind}", where=str(path))
    if known := next((_NO_TEXT[start] for start in _NO_TEXT if raw.startswith(start)), None):
        raise ConfigError(f"is {known[0]}, which is not read", where=str(path), hint=known[1])
    try:
        return raw.decode("utf-16" if raw.startswith(_UTF_16) else "utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError("is not UTF-8 text", where=f"{path}:{raw[: error.start].count(10) + 1}") from error


def read_document(path: Path) -> Document:
    """A YAML or JSON file whose top level is a mapping.

    Raises:
        NotFoundError: there is no such file.
        ConfigError: it is not text, malformed, hostile, or not a mapping.
    """
    return parse_document(read_text(path), path)


def parse_document(text: str, path: Path) -> Document:
    """The text of a YAML, JSON or TOML file, told apart by its name; raises like :func:`read_document`."""
    if path.suffix == ".toml":
        return Document(path, parse_toml(text, str(path)), {})
    if path.suffix in (".json", ".conf"):
        return Document(path, _parse_json(text, path), {})
    if path.suffix == ".jsonl":
        hint = "give what the run printed, its trainer_state.json, or its configuration"
        raise ConfigError("is what a run logged, in JSON lines that are not read", where=str(path), hint=hint)
    values, lines = parse_yaml(text, str(path))
    if not isinstance(values, dict):
        raise ConfigError(_NO_MAPPING if text.strip() else "is empty", where=str(path))
    return Document(path, values, lines)


def validation_reason(error: ValidationError) -> str:
    """The first complaint of pydantic in one line."""
    first = error.errors()[0]
    field = ".".join(str(part) for part in first["loc"])
    reason = first["msg"].removeprefix("Value error, ")
    return plain(f"{field}: {reason}" if field else reason, 200)


def validated(kind: type[_Model], values: Mapping[str, Any], where: str) -> _Model:
    """Values as a model of theirs; raises ConfigError where one does not fit."""
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        raise ConfigError(validation_reason(error), where=where) from error


@contextmanager
def blamed_on(where: str) -> Iterator[None]:
    """A plan that is none, and hardware that there is not, as an error of the file that says it."""
    try:
        yield
    except ConfigError:
        raise
    except AsapError as error:
        raise ConfigError(error.message, where=where, hint=error.hint) from error


def _parse_json(text: str, path: Path) -> dict[str, Any]:
    def load(text: str) -> Any:
        return json.loads(
            text, object_pairs_hook=lambda pairs: _unrepeated(pairs, str(path)), parse_int=bounded_from_text
        )

    try:
        try:
            values = load(text)
        except json.JSONDecodeError:
            bare = _TRAILING.sub(lambda found: found[1] or " ", text)
            bare = _OPEN.sub(lambda found: found[1] or f'"{found[2]}"', bare)
            if bare == text:
                raise
            values = load(bare)
    except json.JSONDecodeError as error:
        raise ConfigError(f"is not JSON: {error.msg}", where=f"{path}:{error.lineno}") from error
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"cannot be read as JSON: {plain(error, 120)}", where=str(path)) from error
    if not isinstance(values, dict):
        raise ConfigError(_NO_MAPPING, where=str(path))
    return values


def _unrepeated(pairs: list[tuple[str, Any]], where: str) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for key, value in pairs:
        if key in values:
            raise ConfigError(f"{plain(key, 60)} is given twice", where=where)
        values[key] = value
    return values


_OWN = ("_wandb", "wandb_version")
_VALUE = "value"


def unwrap(values: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of W&B's ``config.yaml`` (``key: {desc: …, value: …}``), of a run of MosaicML's, and of the
    ``hparams.yaml`` that Lightning saves for NeMo (the model alone, under ``cfg``), as the program had them; any other
    as it is."""
    own = {key: value for key, value in values.items() if key not in _OWN}
    if "command" in values and isinstance(run := values.get("parameters"), dict):
        return {**run, "compute": values.get("compute")}
    if isinstance(model := values.get("cfg"), dict) and len(values) == 1:
        return {"model": model, "trainer": {"precision": model.get("precision")}}
    wrapped = own and len(own) < len(values) and all(isinstance(one, dict) and _VALUE in one for one in own.values())
    return {key: one[_VALUE] for key, one in own.items()} if wrapped else dict(values)


_BELOW_VARIABLE = re.compile(r"^(?:\$\{?\w+\}?|\$\([^()]*\)|`[^`]*`)/", re.ASCII)
_VARIABLE = re.compile(r"\$\{?([A-Za-z_]\w*)(?![\w\[])|(?:\$\(\(|\[)\s*([A-Za-z_]\w*)", re.ASCII)
_DEEPEST = 12
Brought = Mapping[str, str]  # texts by the path that a program finds them under: those that a script writes


@dataclass(frozen=True)
class NamedFile:
    """Its text, and what to call it in errors and provenance."""

    path: Path
    text: str

    def document(self) -> Document:
        """The mapping that it holds; raises like :func:`asap.experiments.files.documents.read_document`."""
        return parse_document(self.text, self.path)


def find_named(named: str, path: Path, brought: Brought | None = None) -> NamedFile | None:
    """The file of that name among those that are brought along, else in the folder of ``path`` or one above it, by as
    much of its path as leads to a file there.

    Raises:
        ConfigError: it is there, and too large, not text, or cannot be read.
        UnreadError: a script makes it in a way that is not read, so that it is brought along empty.
    """
    if (text := find_brought(named, brought or {})) == "":
        reason = f"makes or edits {plain(named, 80)} by a command before the run, which is not read"
        raise UnreadError(reason, where=str(path), hint="give the file, as it is then, as --config")
    if text is not None:
        return NamedFile(path / PurePosixPath(named).name, text)
    parts = PurePosixPath(named.lstrip("/")).parts[-_DEEPEST:]
    folders = (path.parent, *path.absolute().parents)
    places = (folder / PurePosixPath(*parts[first:]) for first in range(len(parts)) for folder in folders)
    found = next((place for place in places if is_file(place)), None)
    return None if found is None else NamedFile(found, read_text(found))


def missing(says: str, named: str, path: Path, hint: str) -> ConfigError:
    """That a file is not there; one whose name is a variable's is asked for by that variable.

    Args:
        says: what a script does with it: ``starts torchtitan with``.
        named: the file, as far as it is known.
        path: the script.
        hint: what to do where it is not there.
    """
    shown = f"{says} {plain(named, 80)}"
    if (variable := open_variable(named)) is None:
        return ConfigError(f"{shown}, which is not there", where=str(path), hint=hint)
    said = f"add {plain(variable, 40)}=…, or give the file as --config"
    return ConfigError(f"{shown}, which a variable names", where=str(path), hint=said)


def named_document(says: str, named: str, path: Path, hint: str, brought: Brought | None = None) -> Document:
    """The mapping in a file that :func:`find_named` finds; raises ConfigError as :func:`missing` has it where it is not
    there."""
    if (found := find_named(named, path, brought)) is None:
        raise missing(says, named, path, hint)
    return found.document()


def open_variable(text: str) -> str | None:
    """The variable that decides a text, of ``${NAMES[$PLACE]}`` the place; ``None`` where none does."""
    found = _VARIABLE.search(text)
    return (found[1] or found[2]) if found else None


def below_variable(named: str) -> str:
    """What follows a variable or a substitution that a path begins with: ``$REPO/configs/run.yaml``."""
    return _BELOW_VARIABLE.sub("", named)


def find_brought(named: str, brought: Brought) -> str | None:
    """The text under that path, or under the only one with the same name; ``None`` if there is none."""
    if named in brought:
        return brought[named]
    name = PurePosixPath(named).name
    same = [text for path, text in brought.items() if PurePosixPath(path).name == name]
    return same[0] if len(same) == 1 else None


_DEFAULTS, _SELF = "defaults", "_self_"
_YAML = (".yaml", ".yml")


def check_whole(document: Document) -> None:
    """Raise UnreadError where a YAML of Hydra takes settings from files that its defaults name; groups (``model: 8b``,
    ``model/8b``) are options of its program."""
    said = document.values.get(_DEFAULTS)
    listed = said if isinstance(said, list) and _SELF in said else []
    files = [name for name in listed if isinstance(name, str) and name != _SELF and not {*name} & {"@", "/", " "}]
    files += [said] if isinstance(said, str) and said.endswith(_YAML) else []
    if files:
        reason = f"takes settings from {plain(', '.join(files), 80)} (its {_DEFAULTS}), which are not read"
        raise UnreadError(reason, where=document.place(_DEFAULTS), hint="give what --cfg job prints of the whole")
