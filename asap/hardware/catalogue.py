"""Chips by name: the ones that come with ASAP, and a user's own in ``$ASAP_HOME/chips/*.toml``."""

import difflib
import re
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

from pydantic import ValidationError

from asap.core.errors import ConfigError, NotFoundError
from asap.core.files import home
from asap.core.numbers import parse_toml
from asap.core.stores import warn_of_store
from asap.core.text import plain
from asap.hardware.chip import Chip

_BUNDLED = Path(__file__).parent / "chips"
_MAKERS = re.compile(r"\b(nvidia|amd|google|cloud|gpu)\b")
_NEAREST = 3


@dataclass(frozen=True)
class Identified:
    """A chip and what was assumed about a name that leaves something open."""

    chip: Chip
    notes: tuple[str, ...] = ()


def load_chip(name: str) -> Chip:
    """The chip of that name or alias, in any case and spelling of blanks and hyphens.

    A bare ``A100`` or ``V100`` is read as the larger memory; :func:`identify_chip` says so in a note.

    Raises:
        NotFoundError: no chip has this name; the nearest names are in the hint.
    """
    return identify_chip(name).chip


def identify_chip(name: str) -> Identified:
    """Like :func:`load_chip`, with a note where the name leaves something open."""
    found = find_chip(name)
    if found is None:
        names = known_chips()
        near = difflib.get_close_matches(_key(name), names, n=_NEAREST, cutoff=0.4)
        hint = f"the nearest are {', '.join(near)}" if near else f"known are {', '.join(names)}"
        raise NotFoundError(f"unknown chip {plain(name, 60)!r}", hint=hint)
    return found


def find_chip(name: str) -> Identified | None:
    """Like :func:`identify_chip`, and ``None`` for an unknown name."""
    index = _index()
    without_remark = re.sub(r"\([^)]*\)", "", name)
    return index.get(_key(name)) or index.get(_key(without_remark))


def known_chips() -> tuple[str, ...]:
    """The names of all chips, sorted."""
    return tuple(sorted({found.chip.name for found in _index().values()}))


def read_chip(path: Path) -> Chip:
    """A chip from a TOML file.

    Raises:
        ConfigError: the file cannot be read, is not TOML, or is not a whole chip.
    """
    try:
        return Chip.model_validate(parse_toml(path.read_text(encoding="utf-8"), str(path)))
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        reason = plain(f"{field}: {first['msg']}" if field else first["msg"], 200)
        raise ConfigError(reason, where=str(path), hint="see asap/hardware/chips for examples") from error
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(plain(f"cannot be read: {error}", 200), where=str(path)) from error


def _index() -> dict[str, Identified]:
    return _with_own(tuple((path, path.stat().st_mtime_ns) for path in sorted((home() / "chips").glob("*.toml"))))


@lru_cache(maxsize=1)
def _with_own(files: tuple[tuple[Path, int], ...]) -> dict[str, Identified]:
    """The bundled chips and the user's; a file that cannot be read is left out, with a warning."""
    chips: list[Chip] = []
    for path, _ in files:
        try:
            chips.append(read_chip(path))
        except ConfigError as error:
            warn_of_store(f"the chip of this file is not known: {error}")
    return _bundled() | _by_key(chips)


@cache
def _bundled() -> dict[str, Identified]:
    return _by_key([read_chip(path) for path in sorted(_BUNDLED.glob("*.toml"))])


def _by_key(chips: list[Chip]) -> dict[str, Identified]:
    index: dict[str, Identified] = {}
    for chip in chips:
        index |= {_key(name): Identified(chip) for name in (chip.name, chip.title, *chip.aliases)}
        index |= {_key(name): Identified(chip, (note,)) for name, note in chip.assumed.items()}
    index.pop("", None)
    return index


def _key(name: str) -> str:
    return re.sub(r"[^a-z0-9.]", "", _MAKERS.sub(" ", name.casefold().replace("_", " ")))


_OF_DEVICES = re.compile(r"(?i)\b(?:NVIDIA|AMD|Tesla|Instinct|GeForce|Graphics Device|HBM\d\w*|PCIe?|SXM\d?|OAM)\b")
_MEMORY = re.compile(r"(?i)(\d{2,3}) ?GB")


def chip_of_device(named: str, memory_gib: float | None = None) -> str | None:
    """The chip that a device's name means, as drivers, JAX or PyTorch have it: the exact name, else the family with the
    memory that fits; or ``None``."""
    if found := find_chip(named) or find_chip(named.casefold().replace("-", " ")):
        return _match_memory(found.chip.name, memory_gib) if memory_gib else found.chip.name
    size = _MEMORY.search(named)
    memory = memory_gib or (float(size[1]) if size else None)
    for word in re.findall(r"[A-Za-z]+\d+[A-Za-z]*", _MEMORY.sub(" ", _OF_DEVICES.sub(" ", named.split("...")[0]))):
        if found := find_chip(word):
            return _match_memory(found.chip.name, memory) if memory else found.chip.name
    return None


def _match_memory(name: str, memory_gib: float) -> str | None:
    """Of chips that differ in memory alone (``a100-40gb``, ``a100-80gb``) the one with such memory."""
    known = [load_chip(each) for each in known_chips() if each.partition("-")[0] == name.partition("-")[0]]
    near = min(known, key=lambda chip: abs(chip.hbm_bytes / 2**30 - memory_gib))
    return near.name if abs(near.hbm_bytes / 2**30 / memory_gib - 1) < 0.15 else None
