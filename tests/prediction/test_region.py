from asap.prediction.step_model.groups import Groups
from asap.prediction.uncertainty.calibration import load_calibration
from asap.prediction.uncertainty.region import unseen_groups


def test_the_unseen_is_named():
    region = load_calibration().full.region
    known = Groups(chip=region.chips[0], framework=region.frameworks[0], precision="bf16", kernel=None)
    strange = Groups(chip="abacus", framework="clay", precision="int8", kernel=None)
    assert unseen_groups(region, known) == ()
    assert unseen_groups(region, strange) == ("chip", "framework", "precision")
