import json
import subprocess
import sys
from pathlib import Path

import pytest

from asap.profiles import read_profile

pytestmark = pytest.mark.process

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "record_run.py"


def test_a_recorded_run_is_marked_small_and_readable(tmp_path):
    command = [sys.executable, SCRIPT, "--out", tmp_path, "--steps", "2"]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    facts = json.loads(ran.stdout)
    assert (facts["devices"], facts["plan"]) == (8, {"data": 2, "seq": 2, "model": 2})
    (file,) = tmp_path.rglob("*.xplane.pb")
    assert file.relative_to(tmp_path) == Path("plugins/profile/run/host.xplane.pb")
    assert str(tmp_path).encode() not in file.read_bytes()
    profile = read_profile(tmp_path)
    assert (profile.devices, profile.extent, profile.kpis.steps) == (8, "step", 2)
    assert {collective.kind for collective in profile.kpis.collectives} >= {"all-reduce", "all-gather"}


def test_a_mesh_of_other_devices_is_refused(tmp_path):
    ran = subprocess.run([sys.executable, SCRIPT, "--out", tmp_path, "--mesh", "3x1x1"], capture_output=True, text=True)
    assert ran.returncode == 2
    assert "3x1x1 is not three degrees with the product 8" in ran.stderr
