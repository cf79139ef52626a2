import os

import pytest

from asap.core.errors import NotFoundError, ProfileError
from asap.profiles import locate


def test_every_way_to_name_a_run_finds_it(write):
    file = write(b"x")
    run = file.parent
    for path in (file, run, run.parent, run.parent.parent, run.parent.parent.parent):
        found = locate(path)
        assert found.files == (file,)
        assert found.warnings == ()
    assert locate(str(file)).path == file


def test_all_hosts_of_a_run_belong_together(write):
    files = {write(b"x", host=host) for host in ("b", "a", "c")}
    assert set(locate(next(iter(files)).parent).files) == files


def test_the_newest_run_is_read_and_the_others_are_counted(write):
    older = write(b"x", run="2026_01_01_00_00_00")
    newest = write(b"x", run="2026_02_01_00_00_00")
    write(b"x", run="2025_12_31_23_59_59")
    os.utime(older, (2e9, 2e9))
    found = locate(newest.parents[3])
    assert found.files == (newest,)
    assert len(found.warnings) == 1
    assert "2026_02_01_00_00_00" in found.warnings[0]
    assert "2 other runs" in found.warnings[0]


def test_runs_without_a_time_in_their_name_go_by_the_time_of_their_files(write):
    first, second = write(b"x", run="baseline"), write(b"x", run="attempt")
    os.utime(first, (1e9, 1e9))
    assert locate(first.parents[3]).files == (second,)
    os.utime(first, (2e9, 2e9))
    assert locate(first.parents[3]).files == (first,)


def test_a_run_can_be_named(write):
    older, newest = write(b"x", run="2026_01_01_00_00_00"), write(b"x", run="2026_02_01_00_00_00")
    found = locate(newest.parents[3], run="2026_01_01_00_00_00")
    assert (found.files, found.warnings) == ((older,), ())
    with pytest.raises(NotFoundError, match="2026_02_01_00_00_00"):
        locate(newest.parents[3], run="nothing")


def test_a_missing_path_is_not_found(tmp_path):
    with pytest.raises(NotFoundError, match="does not exist") as error:
        locate(tmp_path / "nothing")
    assert "plugins/profile/<run>/" in str(error.value)


def test_a_directory_without_profiles_says_what_was_expected(tmp_path):
    (tmp_path / "plugins" / "profile" / "run").mkdir(parents=True)
    with pytest.raises(ProfileError, match=r"holds no profile.*plugins/profile/<run>/\*\.xplane\.pb"):
        locate(tmp_path)


def test_files_that_cannot_be_a_profile_are_refused(tmp_path, write):
    (tmp_path / "notes.txt").write_text("hello")
    (tmp_path / "folder.xplane.pb").mkdir()
    with pytest.raises(ProfileError, match=r"is not a \*\.xplane\.pb file"):
        locate(tmp_path / "notes.txt")
    with pytest.raises(ProfileError, match="is not a regular file"):
        locate(tmp_path)
    with pytest.raises(ProfileError, match="is empty"):
        locate(write(b""))


def test_a_hostile_name_stays_on_one_line(tmp_path):
    with pytest.raises(NotFoundError) as error:
        locate(tmp_path / "a\n\x1b[31mred")
    assert "\n" not in str(error.value)
    assert "\x1b" not in str(error.value)
