"""Event files as TensorBoard itself writes them; skipped where the extra is not installed."""

import json

import fsspec
import pytest

from asap.core.errors import ConfigError, NotFoundError, UsageError
from asap.experiments import Experiment, ExperimentStore
from asap.experiments.store import BUNDLED
from asap.experiments.trackers.source import read_tracked
from asap.study.open_study import open_study

pytest.importorskip("tensorboard")

PROFILE = next((BUNDLED / "cpu-8dev").rglob("*.xplane.pb"))
STEPS = (30.0, 4.9, 4.91, 4.89, 4.9)
MAXTEXT = {
    "model_name": "llama3-8b", "per_device_batch_size": "2", "max_target_length": "4096", "remat_policy": "full",
    "ici_fsdp_parallelism": "-1", "ici_tensor_parallelism": "4",
}  # fmt: skip


def write(folder, steps=STEPS, metric="perf/step_time_seconds", texts=None, first=0):
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.plugins.scalar.summary_v2 import scalar_pb
    from tensorboard.plugins.text.summary_v2 import text_pb
    from tensorboard.summary.writer.event_file_writer import EventFileWriter

    writer = EventFileWriter(str(folder))
    for tag, text in (texts or {}).items():
        writer.add_event(Event(summary=text_pb(f"{tag}/text_summary", text)))
    for step, seconds in enumerate(steps, first):
        writer.add_event(Event(step=step, summary=scalar_pb(metric, seconds)))
    writer.close()
    return folder


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("ASAP_HOME", str(tmp_path / "home"))


def test_a_log_directory_becomes_an_experiment(tmp_path, asap):
    write(tmp_path / "logs", texts=MAXTEXT)
    done = asap("experiments", "add", "mine", "--from", f"tensorboard:{tmp_path / 'logs'}", "--hardware", "v5e-64")
    assert done.code == 0, done.err
    record = json.loads(asap("experiments", "show", "mine", "--format", "json").out)
    assert record["measured"]["seconds"] == pytest.approx(4.9)
    assert (record["measured"]["left_out"], record["plan"]["ici"]["data"]) == (1, 16)
    assert record["provenance"]["measured"] == f"tensorboard:{tmp_path / 'logs'}"


def test_a_profile_beside_the_events_is_read(tmp_path):
    run = write(tmp_path / "logs") / "plugins" / "profile" / "2026_01_01_00_00_00"
    run.mkdir(parents=True)
    (run / PROFILE.name).write_bytes(PROFILE.read_bytes())
    study = open_study(f"tensorboard:{tmp_path / 'logs'}", ExperimentStore(tmp_path))
    assert study.profile.kpis.steps == 3


def test_a_restarted_run_counts_each_step_once(tmp_path):
    write(tmp_path / "logs", steps=(30.0, 5.0, 5.0, 9.0, 9.0))
    write(tmp_path / "logs", steps=(5.0, 5.0, 5.0), first=3)
    experiment = read_tracked(f"tensorboard:{tmp_path / 'logs'}", Experiment(id="mine"))
    assert experiment.measured.steps == 5
    assert experiment.measured.seconds == pytest.approx(5.0)


def test_of_several_runs_one_is_to_be_named(tmp_path):
    for name in ("one", "two"):
        write(tmp_path / name)
    with pytest.raises(UsageError, match="holds 2 runs: one, two"):
        read_tracked(f"tensorboard:{tmp_path}", Experiment(id="mine"))
    assert read_tracked(f"tensorboard:{tmp_path / 'two'}", Experiment(id="mine")).measured is not None


def test_texts_that_are_no_configuration_are_kept_and_said(tmp_path):
    write(tmp_path / "logs", texts={"favourite_colour": "green"})
    experiment = read_tracked(f"tensorboard:{tmp_path / 'logs'}", Experiment(id="mine"))
    assert experiment.hyperparameters == {"favourite_colour": "green"}
    assert "not used as a configuration" in experiment.notes[0]


def test_a_directory_on_an_object_store(tmp_path):
    write(tmp_path / "logs")
    system = fsspec.filesystem("memory")
    try:
        system.put(str(tmp_path / "logs"), "/events/run", recursive=True)
        experiment = read_tracked("tensorboard:memory://events/run", Experiment(id="mine"))
        assert experiment.measured.seconds == pytest.approx(4.9)
    finally:
        system.rm("/events", recursive=True)


def test_what_cannot_be_read_says_why(tmp_path):
    with pytest.raises(NotFoundError, match="no such log directory"):
        read_tracked(f"tensorboard:{tmp_path / 'nosuch'}", Experiment(id="mine"))
    with pytest.raises(NotFoundError, match="has no TensorBoard event file"):
        read_tracked(f"tensorboard:{tmp_path}", Experiment(id="mine"))
    (tmp_path / "events.out.tfevents.1").write_bytes(b"no event file at all, but long enough to look like one")
    with pytest.raises(ConfigError, match="no event"):
        read_tracked(f"tensorboard:{tmp_path}", Experiment(id="mine"))
