import numpy as np

from asap.compiler.mapped.failures import difference

RIGHT = np.random.default_rng(0).standard_normal((32, 48))


def test_rounding_is_no_difference():
    assert difference(RIGHT + 1e-7, RIGHT).pattern == ""


def test_interleaved_columns_are_named():
    interleaved = RIGHT.reshape(32, 4, 12).swapaxes(1, 2).reshape(32, 48)
    assert difference(interleaved, RIGHT).pattern == "46 of 48 columns are right and in the wrong place"


def test_a_sum_that_is_taken_twice_is_named():
    assert difference(2 * RIGHT, RIGHT).pattern == "every element is 2.00 times too large"


def test_a_halo_that_is_too_narrow_shows_at_the_rim():
    wrong = RIGHT.copy()
    wrong[0] += 1
    wrong[:, -1] += 1
    assert difference(wrong, RIGHT).pattern == "only the rim is wrong"


def test_what_is_not_finite_and_what_has_another_shape_are_told():
    wrong = RIGHT.copy()
    wrong[3, 4] = np.nan
    assert difference(wrong, RIGHT).pattern == "1 elements are not finite"
    assert difference(RIGHT[1:], RIGHT).pattern == "the shape is (31, 48) instead of (32, 48)"


def test_noise_says_how_much_of_it_is_wrong():
    wrong = RIGHT.copy()
    wrong[8:16] += np.random.default_rng(1).standard_normal((8, 48))
    assert difference(wrong, RIGHT).pattern == "25 % of the elements are wrong, in 8 of 32 rows"
