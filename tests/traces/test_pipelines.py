"""Schedules of pipelines: their published bubbles, and one thing at a time on each device."""

from itertools import pairwise

import pytest

from asap.prediction.from_trace.pipeline import Pipeline, Schedule, bubble_share, passes

SIZES = [(2, 4), (4, 8), (8, 16), (4, 16), (8, 200)]
PUBLISHED = {
    Schedule.GPIPE: lambda stages, repeats: stages - 1, Schedule.ONE_F_ONE_B: lambda stages, repeats: stages - 1,
    Schedule.INTERLEAVED: lambda stages, repeats: (stages - 1) / repeats,
    Schedule.ZERO_BUBBLE: lambda stages, repeats: (stages - 1) / 3,
}  # fmt: skip
"""Over the work of a microbatch, whose three passes are equally long; the module names the papers."""


@pytest.mark.parametrize(("stages", "count"), SIZES)
@pytest.mark.parametrize(("schedule", "repeats"), [(each, 1) for each in PUBLISHED] + [(Schedule.INTERLEAVED, 4)])
def test_each_schedule_has_its_published_bubble(schedule, repeats, stages, count):
    assert bubble_share(Pipeline(stages, count, schedule, repeats)) == pytest.approx(
        PUBLISHED[schedule](stages, repeats)
    )


@pytest.mark.parametrize(("stages", "count"), SIZES)
def test_dualpipe_has_no_more_than_its_published_bubble(stages, count):
    """Where a forward and a backward that run together take the time of both."""
    assert bubble_share(Pipeline(stages, count, Schedule.DUALPIPE)) <= (stages - 2) / 3 + 1e-9


@pytest.mark.parametrize("schedule", list(Schedule))
def test_a_device_does_one_thing_at_a_time_and_everything_once(schedule):
    found = passes(Pipeline(4, 8, schedule, 2 if schedule is Schedule.INTERLEAVED else 1))
    assert len({each.key for each in found}) == len(found)
    for device in range(4):
        mine = sorted((each.start, each.end) for each in found if each.device == device)
        assert all(later[0] >= one[1] for one, later in pairwise(mine))
        assert sum(end - start for start, end in mine) == pytest.approx(8 * 3)
