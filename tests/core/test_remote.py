"""Object stores: fsspec's own in memory, and a real S3 server where the extra and moto are installed."""

import fsspec
import pytest

from asap.core.errors import NotFoundError, ServiceError, UsageError
from asap.core.remote import is_remote, local_copy
from asap.experiments import ExperimentStore
from asap.experiments.store import BUNDLED
from asap.study.open_study import open_study

PROFILE = next((BUNDLED / "cpu-8dev").rglob("*.xplane.pb"))


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("ASAP_HOME", str(tmp_path))


@pytest.fixture
def bucket():
    system = fsspec.filesystem("memory")
    for run in ("2026_01_01_00_00_00", "2026_02_01_00_00_00"):
        system.put_file(str(PROFILE), f"/bucket/logs/plugins/profile/{run}/host.xplane.pb")
    yield system
    system.rm("/bucket", recursive=True)


def test_an_address_is_no_path():
    assert is_remote("gs://bucket/run")
    assert not is_remote("/var/run")
    assert not is_remote("C:/run")


def test_of_a_folder_the_newest_run_is_copied_once(bucket):
    first = local_copy("memory://bucket/logs", ".xplane.pb")
    (copied,) = first.rglob("*.xplane.pb")
    assert copied.parent.name == "2026_02_01_00_00_00"
    assert copied.read_bytes() == PROFILE.read_bytes()
    written = copied.stat().st_mtime_ns
    assert local_copy("memory://bucket/logs", ".xplane.pb") == first
    assert copied.stat().st_mtime_ns == written


def test_a_profile_on_an_object_store_is_analysed(bucket, tmp_path):
    study = open_study(
        "memory://bucket/logs/plugins/profile/2026_01_01_00_00_00/host.xplane.pb", ExperimentStore(tmp_path)
    )
    assert (study.profile.kpis.steps, study.experiment.id) == (3, "host.xplane.pb")


def test_what_cannot_be_read_says_why(bucket):
    with pytest.raises(NotFoundError, match="holds no"):
        local_copy("memory://bucket/logs/plugins/profile/2026_01_01_00_00_00", ".json")
    with pytest.raises((NotFoundError, ServiceError)):
        local_copy("memory://nosuch/file", ".xplane.pb")
    with pytest.raises(UsageError, match="no file system"):
        local_copy("nosuchscheme://bucket/file", ".xplane.pb")


@pytest.mark.process
def test_a_profile_on_s3(tmp_path, monkeypatch):
    pytest.importorskip("s3fs")
    server = pytest.importorskip("moto.server").ThreadedMotoServer(port=0)
    server.start()
    host, port = server.get_host_and_port()
    try:
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
        system = fsspec.filesystem("s3")
        system.mkdir("runs")
        system.put_file(str(PROFILE), "runs/one/plugins/profile/2026_01_01_00_00_00/host.xplane.pb")
        study = open_study("s3://runs/one", ExperimentStore(tmp_path))
        assert study.profile.kpis.steps == 3
    finally:
        server.stop()
