import subprocess
import sys

import pytest

from asap.core.errors import BadInputError, ServiceError
from asap.core.locking import locked

HOLDER = """
import sys
from pathlib import Path
from asap.core.locking import locked
with locked(Path(sys.argv[1]), "it"):
    print("held", flush=True)
    input()
"""


def test_a_second_process_waits_and_then_says_who_is_in_the_way(tmp_path):
    command = [sys.executable, "-c", HOLDER, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout.readline() == "held\n"
        with (
            pytest.raises(ServiceError, match="another process is writing the history"),
            locked(tmp_path, "the history", 0.1),
        ):
            pass
        holder.communicate("\n")
    with locked(tmp_path, "the history"):
        pass


def test_a_full_or_read_only_folder_is_told_with_what_to_do(tmp_path):
    with pytest.raises(BadInputError, match="ASAP_HOME"), locked(tmp_path / "made", "it"):
        raise OSError(28, "No space left on device")
    (tmp_path / "file").touch()
    with pytest.raises(BadInputError), locked(tmp_path / "file" / "below", "it"):
        pass
