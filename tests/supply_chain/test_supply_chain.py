"""Workflows, lock file and extras: pinned, least permissions, each named where it is missing."""

import re
import sys
import tomllib
from functools import partial
from importlib import metadata
from pathlib import Path

import pytest
import yaml

from asap.compiler.toolchain.versions import compiler_versions
from asap.core.errors import AsapError
from asap.profiles.xprof import converter

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
TEMPLATES = sorted((ROOT / "asap" / "ci" / "github" / "templates").glob("*.yml"))
PINNED = re.compile(r"[\w.-]+/[\w./-]+@[0-9a-f]{40}")


@pytest.mark.parametrize("path", [*WORKFLOWS, *TEMPLATES, ROOT / "action.yml"], ids=lambda path: path.name)
def test_actions_are_pinned_by_commit(path):
    used = re.findall(r"uses:\s*(\S+)", path.read_text(encoding="utf-8"))
    assert [name for name in used if name != "ASAP_ACTION" and not PINNED.fullmatch(name)] == []


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_have_no_permission_but_what_a_job_names(path):
    workflow = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert workflow["permissions"] == {}
    for job in workflow["jobs"].values():
        assert job["permissions"]["contents"] == "read"
        assert job["timeout-minutes"] <= 60


def test_the_lock_has_every_dependency_and_no_address():
    lock = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    locked = {line.split("==")[0].lower().replace("_", "-") for line in lock.splitlines() if "==" in line}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = (one for of in project["optional-dependencies"].values() for one in of)
    wanted = {re.split(r"[\[<>=~;\s]", one)[0].lower().replace("_", "-") for one in (*project["dependencies"], *extras)}
    assert wanted - locked <= {"asap"}
    assert not re.search(r"://|^--", lock, re.MULTILINE)


def test_every_locked_package_is_listed_with_its_licence():
    lock = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    page = (ROOT / "THIRD_PARTY_LICENSES.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| ([\w.-]+) \| \S.* \|$", page, re.MULTILINE)
    assert set(listed) - {"package"} == set(re.findall(r"^([\w.-]+)==", lock, re.MULTILINE))


def test_where_an_extra_is_missing_its_name_is_said(monkeypatch):
    def absent(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", absent)
    monkeypatch.setitem(sys.modules, "xprof.convert", None)
    converter._xprof.cache_clear()
    for extra, call in {
        "tpu": compiler_versions,
        "jax": partial(compiler_versions, tpu=False),
        "xprof": partial(converter.run_tool, "overview_page", [], []),
    }.items():
        with pytest.raises(AsapError) as refused:
            call()
        assert refused.value.hint == f"pip install -e '.[{extra}]' in the clone of ASAP"
