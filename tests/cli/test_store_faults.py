"""Damage to every store: no command ends with an internal error, the engine gives its result, and a repair mends it."""

import os
import subprocess
import sys
from itertools import cycle
from pathlib import Path

import pytest

import store_faults
from asap.sharding_memory import Kind, Worklog, read_session, verify_session
from asap.sharding_memory.worklog import session_path
from tests.homes import home

__all__ = ["home"]
HERE = Path(__file__).parents[2]


@pytest.mark.process
@pytest.mark.slow
def test_no_fault_of_a_store_takes_the_result_away(indexed_home):
    """All stores and all faults, under commands in turn; scripts/store_faults.py has all combinations."""
    environment = os.environ | {"PYTHONPATH": f"{HERE}:{HERE / 'scripts'}"}
    command = [sys.executable, "-m", "store_faults", "--in-turn", "--home", str(indexed_home)]
    done = subprocess.run(command, env=environment, cwd=HERE, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_all_commands_take_their_turn():
    cases = (len(store_faults.STORES) * len(store_faults.FAULTS)) // 3 + len(store_faults.HOMES)
    turns = store_faults.in_turn(cycle(store_faults.COMMANDS), cases)
    assert {name for names in turns for name in names} == set(store_faults.COMMANDS)


def test_an_emptied_worklog_is_no_intact_one(run_command, home):
    Worklog("emptied").append(Kind.NOTE, {})
    session_path("emptied").write_bytes(b"")
    done = run_command("sessions", "verify", "emptied")
    assert done.code == 4
    assert "emptied" in done.err


def test_a_repair_keeps_what_is_good_and_moves_what_is_not(run_command, home):
    log = Worklog("long")
    for number in range(3):
        log.append(Kind.NOTE, {"number": number})
    data = session_path("long").read_bytes()
    session_path("long").write_bytes(data.replace(b'"number":2', b'"number":9'))
    (home / "conversations.sqlite").write_bytes(b"no database")
    (home / "own_runs.json").write_text("{}")
    (home / "chips").mkdir()
    (home / "chips" / "mine.toml").write_text("= =")
    assert run_command("doctor").code == 4
    done = run_command("doctor", "--repair")
    assert done.code == 0, done.out + done.err
    assert [record.fields.get("number") for record in read_session("long")] == [0, 1, None]
    assert verify_session("long").ok
    moved = {path.name: path for path in (home / "damaged").rglob("*") if path.is_file()}
    assert set(moved) == {"long.jsonl", "conversations.sqlite", "own_runs.json", "mine.toml"}
    assert moved["long.jsonl"].read_bytes().count(b"\n") == 3
    assert all(name in done.err for name in moved)


def test_a_damaged_history_is_left_as_it_is_until_it_is_repaired(run_command, home):
    (home / "history").mkdir(parents=True)
    (home / "history" / "records.jsonl").write_text('{"id": 1}\n')
    exported = home / "records.jsonl"
    assert run_command("history", "export", str(exported)).code == 0
    good = exported.read_text().splitlines()[0].replace('"id": "', '"id": "own-', 1)
    exported.write_text(good)
    assert run_command("history", "import", str(exported)).code == 4
    assert (home / "history" / "records.jsonl").read_text() == '{"id": 1}\n'


def test_everything_in_the_home_is_its_owners_alone(run_command, home):
    assert run_command("analyze", "cpu-8dev").code == 0
    assert list(home.rglob("*.jsonl"))
    assert [str(path) for path in (home, *home.rglob("*")) if path.stat().st_mode & 0o077] == []
