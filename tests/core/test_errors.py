from asap.core import errors
from tests.cases import cases


def test_an_error_says_what_where_and_what_to_do():
    error = errors.ConfigError("unknown key", where="a.yml:3", hint="did you mean b?")
    assert str(error) == "a.yml:3: unknown key (did you mean b?)"


@cases("kind, code")
def test_exit_codes_are_the_contract(kind, code):
    assert getattr(errors, kind)("x").exit_code == code
