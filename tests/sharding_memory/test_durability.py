"""A small sample of scripts/measure torture."""

import pytest

from durability import campaign

pytestmark = pytest.mark.process


def test_nothing_acknowledged_is_lost_and_nothing_breaks():
    counts = campaign(kills=30, index=False)
    assert [one for one in counts if not one.ok] == []
    assert [one.name for one in counts if not one.acknowledged] == ["read-only"]
