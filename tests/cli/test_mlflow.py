"""Runs on a real MLflow server; skipped where only the client, or nothing of MLflow, is installed."""

import os
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from asap.core.errors import NotFoundError, UsageError
from asap.experiments import Experiment, ExperimentStore
from asap.experiments.store import BUNDLED
from asap.experiments.trackers.source import is_tracked, read_tracked
from asap.study.open_study import open_study

PROFILE = next((BUNDLED / "cpu-8dev").rglob("*.xplane.pb"))
PARAMS = {
    "model_name": "llama3-8b", "per_device_batch_size": "2", "max_target_length": "4096", "remat_policy": "full",
    "ici_tensor_parallelism": "4",
}  # fmt: skip
START_S = 120


def test_a_target_names_a_run():
    assert is_tracked("mlflow:0123abc")
    assert is_tracked("tensorboard:logs")
    assert not is_tracked("/runs/mlflow")


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    pytest.importorskip("mlflow.server")
    folder = tmp_path_factory.mktemp("mlflow")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [
        sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(port), "--workers", "1",
        "--backend-store-uri", f"sqlite:///{folder}/runs.db", "--artifacts-destination", str(folder / "artifacts"),
    ]  # fmt: skip
    environment = os.environ | {"MLFLOW_DISABLE_TELEMETRY": "true", "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
    with (
        (folder / "log").open("w") as log,
        subprocess.Popen(command, stdout=log, stderr=log, cwd=folder, env=environment) as process,
    ):
        try:
            _wait(f"http://127.0.0.1:{port}/health", process, folder / "log")
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()


def _wait(address: str, process: subprocess.Popen, log: Path):
    end = time.monotonic() + START_S
    while time.monotonic() < end and process.poll() is None:
        try:
            urllib.request.urlopen(address, timeout=2).read()
            return
        except OSError:
            time.sleep(0.5)
    pytest.fail(log.read_text())


@pytest.fixture
def run(server, monkeypatch, tmp_path):
    import mlflow

    monkeypatch.setenv("MLFLOW_TRACKING_URI", server)
    monkeypatch.setenv("ASAP_HOME", str(tmp_path / "home"))
    mlflow.set_tracking_uri(server)
    client = mlflow.MlflowClient()
    run = client.create_run("0", run_name="first try").info.run_id
    for name, value in PARAMS.items():
        client.log_param(run, name, value)
    for step, seconds in enumerate((30.0, 4.9, 4.91, 4.89, 4.9)):
        client.log_metric(run, "perf/step_time_seconds", seconds, step=step)
    return client, run


@pytest.mark.process
@pytest.mark.slow
def test_a_run_becomes_an_experiment(run, tmp_path):
    client, run_id = run
    experiment = read_tracked(f"mlflow:{run_id}", Experiment(id="mine"))
    assert experiment.model.layers == 32
    assert experiment.measured.seconds == pytest.approx(4.9)
    assert (experiment.measured.left_out, experiment.description) == (1, "first try")
    client.log_artifact(run_id, str(PROFILE), "plugins/profile/2026_01_01_00_00_00")
    study = open_study(f"mlflow:{run_id}", ExperimentStore(tmp_path))
    assert study.profile is not None
    assert study.experiment.id == f"mlflow-{run_id}"
    with pytest.raises(NotFoundError):
        read_tracked("mlflow:" + "0" * 32, Experiment(id="mine"))
    with pytest.raises(UsageError):
        read_tracked("mlflow:../../etc", Experiment(id="mine"))


@pytest.mark.process
@pytest.mark.slow
def test_a_result_is_logged_back_on_request(run, asap, monkeypatch, tmp_path):
    pytest.importorskip("vl_convert")
    client, run_id = run
    done = asap("experiments", "add", "mine", "--from", f"mlflow:{run_id}", "--hardware", "v5e-64")
    assert done.code == 0, done.err
    monkeypatch.chdir(tmp_path)  # where the page is written
    done = asap("report", "mine", "--log-to", f"mlflow:{run_id}")
    assert done.code == 0, done.err
    assert client.get_run(run_id).data.tags["asap.proposal_1"].startswith("data=64")
    assert {entry.path for entry in client.list_artifacts(run_id, "asap")} == {"asap/analysis.json", "asap/report.html"}
