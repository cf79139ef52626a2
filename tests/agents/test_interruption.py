"""Ctrl-C in the middle: the run ends at once, and what was logged until then is whole."""

import os
import signal
import subprocess
import sys

import pytest

from asap.sharding_memory import Kind, verify_session

pytestmark = pytest.mark.process

SCRIPT = """
import sys
from asap.agents.settings import Settings
from asap.agents.workflow.analyze import analyze
from asap.experiments import ExperimentStore
from tests.language_models.misbehaving import register
register()
try:
    analyze("paper-v6e-16", store=ExperimentStore(), settings=Settings(model="test/sleeping"), session="interrupted")
except KeyboardInterrupt:
    sys.exit(130)
"""


def test_the_log_of_an_interrupted_run_is_whole(home, log):
    command = [sys.executable, "-c", SCRIPT]
    environment = os.environ | {"ASAP_HOME": str(home), "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        assert run.stdout.readline() == "thinking\n"
        run.send_signal(signal.SIGINT)
        _, errors = run.communicate(timeout=60)
    assert run.returncode == 130, errors
    assert "Traceback" not in errors
    assert verify_session("interrupted").ok
    asked, answered = log("interrupted", Kind.MODEL_REQUEST), log("interrupted", Kind.MODEL_RESPONSE)
    assert (asked[-1].payload["agent"], len(asked)) == ("proposal", len(answered) + 1)
    last = log("interrupted")[-1]
    assert (last.kind, last.payload) == (Kind.NOTE, {"event": "interrupted"})
