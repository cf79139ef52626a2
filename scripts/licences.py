"""Write ``THIRD_PARTY_LICENSES.md``: python scripts/licences.py [FOLDER] reads the metadata of what is installed.

--bill prints the software bill of materials of what ``pip install asap`` brings, as CycloneDX 1.6 JSON.

FOLDER holds packages that are not, as ``uv pip install --no-deps --target FOLDER`` puts them there. What is found
nowhere keeps the licence that the page has.
"""

import json
import re
import sys
import tomllib
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "THIRD_PARTY_LICENSES.md"
HEAD = """# Licences of what ASAP installs

The packages of `constraints.txt`, with the licence that their own metadata state. Written by `scripts/licences.py`.
"""
_OF_EXTRA = re.compile(r"""extra\s*==\s*['"]([^'"]+)""")


def main(folders: list[str]) -> None:
    if folders == ["--bill"]:
        print(json.dumps(bill(), indent=2))
        return
    sys.path[:0] = folders
    locked = {line.split("==")[0] for line in (ROOT / "constraints.txt").read_text().splitlines() if "==" in line}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    always = required(project["dependencies"]) & locked
    parts = {"With `pip install asap`": always, "With its extras, and for development": locked - always}
    PAGE.write_text(HEAD + "".join(table(title, names) for title, names in parts.items()), encoding="utf-8")


def required(requirements: Iterable[str]) -> set[str]:
    """Names of the packages that requirements bring in on any platform, with the extras that they ask for."""
    found, left = set[tuple[str, frozenset[str]]](), [(one, frozenset[str]()) for one in requirements]
    while left:
        text, wanted = left.pop()
        of_extras = frozenset(_OF_EXTRA.findall(text))
        requirement = Requirement(text)
        package = canonicalize_name(requirement.name), frozenset(requirement.extras)
        if package in found or (of_extras and not of_extras & wanted):
            continue
        found.add(package)
        with suppress(metadata.PackageNotFoundError):  # of another platform
            left += [(one, package[1]) for one in metadata.requires(package[0]) or ()]
    return {name for name, _ in found}


def table(title: str, names: Iterable[str]) -> str:
    rows = "".join(f"| {name} | {licence(name)} |\n" for name in sorted(names))
    return f"\n## {title}\n\n| package | licence |\n|---|---|\n{rows}"


@cache
def listed() -> dict[str, str]:
    """What the page said before it is written again."""
    return dict(re.findall(r"^\| ([\w.-]+) \| (.+) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE))


def licence(name: str) -> str:
    """The licence that a package states: as an expression, as a classifier, or in its first line of words."""
    try:
        stated = metadata.metadata(name)
    except metadata.PackageNotFoundError:
        return listed().get(name, "only on another platform; not looked up")
    if "License-Expression" in stated:
        return stated["License-Expression"]
    classifiers = [one for one in stated.get_all("Classifier") or () if one.startswith("License :: ")]
    named = [one.split(" :: ")[-1] for one in classifiers if one.count(" :: ") > 1]
    if not named and "License" in stated:
        named = stated["License"].strip().splitlines()[:1]
    return ", ".join(named) or "not stated"


def bill() -> dict[str, object]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    installed = {name: version for name in sorted(required(project["dependencies"])) if (version := _version(name))}
    asap = {"type": "application", "name": "asap", "version": metadata.version("asap"), "bom-ref": "asap"}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": asap},
        "components": [_component(name, version) for name, version in installed.items()],
    }


def _component(name: str, version: str) -> dict[str, object]:
    address = f"pkg:pypi/{name}@{version}"
    return {
        "type": "library", "bom-ref": address, "name": name, "version": version, "purl": address,
        "licenses": [{"license": {"name": licence(name)}}],
    }  # fmt: skip


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:  # of another platform, or of an older Python
        return None


if __name__ == "__main__":
    main(sys.argv[1:])
