"""The wheel is the same whenever it is built, and works without the checkout where it is installed."""

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from asap import __version__

pytestmark = pytest.mark.process

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Built twice, with the same bytes."""
    folder, environment = tmp_path_factory.mktemp("dist"), os.environ | {"PYTHON": sys.executable}
    environment |= {} if (ROOT / ".git").exists() else {"SOURCE_DATE_EPOCH": "1700000000"}
    done = subprocess.run([ROOT / "scripts" / "wheel", folder], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(r"[0-9a-f]{64}  \S+\.whl\n", done.stdout)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    target = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(target), str(wheel)]
    subprocess.run(command, check=True, capture_output=True)
    return target


def run(installed, folder, *arguments):
    program = (
        f"import sys; sys.path.insert(0, {str(installed)!r}); sys.argv[1:] = {list(arguments)!r};"
        "import asap.cli; print(asap.cli.__file__, file=sys.stderr); asap.cli.main()"
    )
    return subprocess.run(
        [sys.executable, "-I", "-c", program], cwd=folder, capture_output=True, text=True,
        env={"ASAP_HOME": str(folder)},
    )  # fmt: skip


def test_the_version_is_the_latest_of_the_changelog_and_of_the_citation():
    (version, *_) = re.findall(r"^## \[([\d.]+)\] - ", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.M)
    assert version == __version__
    assert f"version: {version}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")


def test_prompts_knowledge_and_history_are_inside(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    for folder in ("prompts", "knowledge", "history_db"):
        expected = {f"asap/_data/{folder}/{path.name}" for path in (ROOT / folder).iterdir()}
        assert expected
        assert expected <= set(names)


def test_an_installed_wheel_says_what_to_type(installed, tmp_path):
    assert "asap analyze" in run(installed, tmp_path).stdout


def test_an_installed_wheel_analyses_from_another_folder(installed, tmp_path):
    done = run(installed, tmp_path, "analyze", "paper-v5p-512", "--format", "json")
    assert done.returncode == 0, done.stderr
    assert str(installed) in done.stderr
    assert '"schema": "asap.analysis/3"' in done.stdout
    assert "principle" in done.stdout
