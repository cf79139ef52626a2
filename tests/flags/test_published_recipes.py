"""Configurations that their makers tuned: their flags are known, and little is to be said against them."""

import json
from pathlib import Path

import pytest

from asap.flags import FlagReview, Situation, review_flags
from asap.hardware import load_chip
from asap.models import Architecture
from asap.plans import Plan

FILE = Path(__file__).parents[1] / "data" / "flags" / "recipes.jsonl"
RECIPES = [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()]


def review(recipe) -> FlagReview:
    experts = {"experts": 8, "experts_per_token": 2} if recipe["mixture"] else {}
    model = Architecture(layers=8, d_model=64, **experts)
    where = Situation(Plan.parse(recipe["plan"]), load_chip(recipe["chip"]), "maxtext", model)
    return review_flags({"LIBTPU_INIT_ARGS": recipe["flags"]}, where)


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe["source"].rpartition("/training/")[2][-60:])
def test_its_flags_are_recognised_and_none_is_called_harmful(recipe):
    found = review(recipe)
    assert [flag.name for flag in found.set if flag.purpose is None] == []
    assert {advice.kind for advice in found.unwise} <= {"contradictory"}
    assert len(found.missing) <= 2


def test_what_tpu_recipes_publishes_lacks_nothing():
    published = [recipe for recipe in RECIPES if "tpu-recipes" in recipe["source"]]
    assert len(published) > 10
    assert [recipe["source"] for recipe in published if review(recipe).missing] == []


def test_few_configurations_of_maxtext_lack_anything():
    lacking = [recipe for recipe in RECIPES if review(recipe).missing]
    assert len(lacking) <= len(RECIPES) / 4
