import pytest

from asap.core import errors


def test_an_error_says_what_where_and_what_to_do():
    error = errors.ConfigError("unknown key", where="a.yml:3", hint="did you mean b?")
    assert str(error) == "a.yml:3: unknown key (did you mean b?)"


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        (errors.UsageError, 2),
        (errors.NotFoundError, 3),
        (errors.BadInputError, 4),
        (errors.ConfigError, 4),
        (errors.PlanError, 4),
        (errors.ProfileError, 4),
        (errors.InsufficientEvidenceError, 5),
        (errors.ServiceError, 6),
        (errors.AsapError, 7),
    ],
)
def test_exit_codes_are_the_contract(kind, code):
    assert kind("x").exit_code == code
