"""Settings written over a configuration file, whose other lines stay as they are."""

import pytest
import yaml

from asap.ci.checks.edits import edited_toml, edited_yaml
from asap.core.errors import ConfigError

FORMS = {
    "a: 1  # one\nb: 2\n": ("a: 3", "a: 3  # one\nb: 2\n"),
    "a:\nb: 2\n": ("a: 3", "a: 3\nb: 2\n"),
    "a: 1": ("c: 3", "a: 1\nc: 3"),
    "s:\n  x: 1  # one\n\n# next\nt: 2\n": ("s: {y: 3}", "s:\n  x: 1  # one\n  y: 3\n\n# next\nt: 2\n"),
    "s: {x: 1}  # flow\n": ("s: {y: {z: 3}}", "s: {x: 1, y: {z: 3}}  # flow\n"),
    "a: 'one'\nl:\n- p\n- q\n": ("a: two\ns: {x: 1}", "a: two\nl:\n- p\n- q\ns:\n  x: 1\n"),
    "a: [1, 2]\nb: 2\n": ("a: [3]", "a: [3]\nb: 2\n"),
}


@pytest.mark.parametrize("text", FORMS)
def test_keys_are_written_over_yaml_and_the_rest_stays(text):
    changes, expected = FORMS[text]
    assert edited_yaml(text, changes) == expected
    assert yaml.safe_load(expected) != yaml.safe_load(text)


BOMB = "a: &a [x]\n" + "".join(
    f"{b}: &{b} [{', '.join([f'*{a}'] * 9)}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize("text", ["a: &x 1\nb: *x\n", "- 1\n", "a: 1\na: 2\n", "k: v: w", "b: 1\n", BOMB])
def test_what_no_single_place_says_is_refused(text):
    with pytest.raises(ConfigError):
        edited_yaml(text, "b: {c: 3}" if text != "a: &x 1\nb: *x\n" else "b: 3")


def test_keys_are_written_over_toml_and_the_rest_stays():
    assert edited_toml("[a]\nx = 1 # one\n[b]\n", "[a]\nx = 2\n[c]\ny = 3") == "[a]\nx = 2 # one\n[b]\n\n[c]\ny = 3\n"
    with pytest.raises(ConfigError):
        edited_toml("a = 1\n", "[a]\nx = 2")
