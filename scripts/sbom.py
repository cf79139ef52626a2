"""Print the software bill of materials of what ``pip install asap`` brings, as CycloneDX 1.6 JSON.

Versions and licences are those of the packages that are installed here: python scripts/sbom.py > sbom.json.
"""

import json
import tomllib
from importlib import metadata

from licences import ROOT, licence, required


def main() -> None:
    print(json.dumps(bill(), indent=2))


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
    main()
