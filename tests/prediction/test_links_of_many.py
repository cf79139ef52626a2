"""Links of a group on the torus: the same for one machine, looked up, and for many at once."""

from dataclasses import fields

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from asap.prediction.step_model.inputs import HardwareInputs
from asap.prediction.step_model.torus import links_of

DEGREES = st.sampled_from([1, 2, 3, 4, 6, 8, 16, 32, 48, 64, 256, 1024])


@given(st.tuples(*[st.sampled_from([1, 2, 4, 6, 8, 16])] * 3), st.lists(st.tuples(DEGREES, DEGREES), min_size=1))
def test_one_machine_and_many_have_the_same_links(sides, groups):
    members, inner = np.array(groups, dtype=float).T
    one, many = machine(*map(float, sides)), machine(*[np.full(len(members), float(side)) for side in sides])
    assert np.array_equal(links_of(one, members, inner), links_of(many, members, inner))


def machine(x, y, z) -> HardwareInputs:
    ones = {field.name: 1.0 for field in fields(HardwareInputs)}
    return HardwareInputs(**ones | {"torus_x": x, "torus_y": y, "torus_z": z, "links_x": 2.0, "links_z": 2.0})
