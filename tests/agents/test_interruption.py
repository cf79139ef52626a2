"""Ctrl-C while a model thinks: the engine's own result is kept, the log is whole, and its replay agrees with it."""

import json
import os
import signal
import subprocess
import sys

import pytest

from asap.experiments import ExperimentStore
from asap.replay.replay import replay
from asap.sharding_memory import Kind, verify_session
from tests.cases import kept

pytestmark = pytest.mark.process

SCRIPT = kept(__file__)["SCRIPT"]


def test_an_interrupted_analysis_keeps_the_engines_result(home, log):
    command = [sys.executable, "-c", SCRIPT]
    environment = os.environ | {"ASAP_HOME": str(home), "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run:
        assert run.stdout.readline() == "thinking\n"
        run.send_signal(signal.SIGINT)
        printed, errors = run.communicate(timeout=60)
    assert run.returncode == 130, errors
    assert "Traceback" not in errors
    assert "interrupted" in errors
    analysis = json.loads(printed)
    assert (analysis["answered_by"], len(analysis["proposals"])) == ("engine", 3)
    assert verify_session("interrupted").ok
    asked, answered = log("interrupted", Kind.MODEL_REQUEST), log("interrupted", Kind.MODEL_RESPONSE)
    assert (asked[-1].payload["agent"], len(asked)) == ("proposal", len(answered) + 1)
    noted, last = log("interrupted")[-2:]
    assert (noted.kind, noted.payload) == (Kind.NOTE, {"event": "interrupted"})
    assert (last.kind, last.payload["node"]) == (Kind.RESULT, "analysis")
    again = replay("interrupted", ExperimentStore())
    assert again.divergence is None
    assert again.same_result
