import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from xspaces import TRAINING, Op, plane, serialised, tpu_profile

from asap.core.errors import ProfileError
from asap.profiles import read_profile


def one_line(error: ProfileError, file: Path) -> str:
    text = str(error)
    assert "\n" not in text
    assert text.startswith(str(file))
    assert "asap-" not in text
    return text


def test_garbage_is_no_profile(write):
    for data in (b"hello world\n", random.Random(0).randbytes(5000), b"\xff" * 100):
        file = write(data)
        with pytest.raises(ProfileError) as error:
            read_profile(file)
        assert "cannot be read as a profile" in one_line(error.value, file)


@pytest.mark.parametrize("share", [0.1, 0.37, 0.62, 0.9, 0.999])
def test_a_truncated_profile_is_refused(write, recorded, share):
    for data in (tpu_profile(), next(recorded.glob("plugins/profile/*/*.xplane.pb")).read_bytes()):
        file = write(data[: int(len(data) * share)])
        with pytest.raises(ProfileError) as error:
            read_profile(file)
        assert "cut off" in one_line(error.value, file)


def test_a_profile_cut_between_two_planes_is_read_and_warned_about(write):
    data = tpu_profile(devices=3)
    second = data.index(b"\x12\x0d/device:TPU:1") - 3  # a tag and a length of two bytes stand before its name
    profile = read_profile(write(data[:second]))
    assert profile.devices == 1
    assert any("end of the file is missing" in warning for warning in profile.warnings)


def test_a_profile_copied_as_text_says_so(write):
    data = tpu_profile(operations=TRAINING * 3)
    mangled = bytes(random.Random(0).randbytes(20_000)).decode(errors="replace").encode()
    file = write(data[:100] + mangled)
    with pytest.raises(ProfileError) as error:
        read_profile(file)
    assert "was copied as text" in one_line(error.value, file)


def test_the_host_that_cannot_be_read_is_named(write):
    write(tpu_profile(), host="good")
    bad = write(b"hello world\n", host="bad")
    with pytest.raises(ProfileError, match="bad"):
        read_profile(bad.parent)


@pytest.mark.parametrize("planes", [["Task Environment"], ["/host:CPU"], ["/device:TPU:0", "/host:CPU"]])
def test_a_profile_in_which_nothing_ran_has_gaps_with_the_capture_that_fills_them(write, planes):
    profile = read_profile(write(serialised([plane(name) for name in planes])))
    assert profile.operations == ()
    assert (profile.kpis.communication, profile.kpis.duty_cycle, profile.device_type) == (None, None, None)
    assert any("no device ran anything" in gap.what for gap in profile.gaps)
    assert all(gap.capture for gap in profile.gaps)


def test_what_is_not_training_is_said(write):
    forward = Op("fusion.1", "loop fusion", 500, path="jit(with_sharding_constraint)/add:")
    unmarked = read_profile(write(tpu_profile([forward], marked=False, module="jit_f(1)")))
    marked = read_profile(write(tpu_profile([forward])))
    training = read_profile(write(tpu_profile(marked=False)))
    for profile, warned in ((unmarked, True), (marked, False), (training, False)):
        assert any("may not be training" in warning for warning in profile.warnings) is warned


def test_names_with_escapes_are_carried_and_break_nothing(write):
    hostile = Op("a\x1b[31m`@everyone`\n<b>", "loop fusion", 500, 10**6, 2**20)
    profile = read_profile(write(tpu_profile([hostile])))
    assert profile.operations[0].fraction == pytest.approx(0.5)
    assert not any("\x1b" in warning for warning in profile.warnings)


def test_the_folder_of_the_user_stays_as_it_was(write, recorded):
    file = write(tpu_profile())
    shutil.copytree(recorded, file.parents[3] / "copy")
    before = _listing(file.parents[3])
    read_profile(file)
    read_profile(file.parents[3] / "copy")
    assert _listing(file.parents[3]) == before


def test_a_stale_cache_beside_the_input_changes_nothing(write):
    from xprof.convert import raw_to_tool_data

    file = write(tpu_profile(step_us=5000))
    raw_to_tool_data.xspace_to_tool_data([str(file)], "overview_page", {})
    assert any(entry.name.startswith("ALL_HOSTS") for entry in file.parent.iterdir())
    file.write_bytes(tpu_profile(step_us=1000))
    assert read_profile(file).kpis.step_time_s == pytest.approx(1e-3)


def test_a_replaced_file_is_read_anew(write):
    assert read_profile(write(tpu_profile(step_us=2000))).kpis.step_time_s == pytest.approx(2e-3)
    assert read_profile(write(tpu_profile(step_us=3000))).kpis.step_time_s == pytest.approx(3e-3)


@pytest.mark.process
def test_nothing_is_said_on_standard_error(write):
    good, bad = write(tpu_profile(), host="good"), write(b"hello world\n", run="bad")
    code = (
        "import sys; from asap.profiles import read_profile\n"
        "for path in sys.argv[1:]:\n"
        "    try: read_profile(path)\n"
        "    except Exception: pass\n"
    )
    ran = subprocess.run([sys.executable, "-c", code, good, bad], capture_output=True, text=True, check=True)
    assert (ran.stdout, ran.stderr) == ("", "")


def _listing(folder: Path) -> dict[Path, bytes | None]:
    return {path: path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}
