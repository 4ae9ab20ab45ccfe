"""Settings: what fits which field, the words for what was expected, all faults at once, who chose what."""

import math
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal

import numpy as np
import pytest
import torch

from holdfast import settings
from holdfast.errors import BadInput
from holdfast.methods import methods
from holdfast.nets import nets
from holdfast.protocols import protocols
from holdfast.seeds import generator, seed_for, seeded
from holdfast.settings import BelowOne, Count, Fraction, NonNegative, Positive, Range, Whole, expected, fit
from holdfast.streams import streams

SHELVES = [methods, nets, protocols, streams]
Words = Literal["sgd", "adam"]
Mixed = Literal["natural", "random"] | tuple[Whole, ...]


@pytest.mark.parametrize(
    ("kind", "given", "value"),
    [
        (int, 3, 3),
        (int, "3", 3),
        (int, " 3 ", 3),
        (int, "-3", -3),
        (int, 3.0, 3),
        (int, np.int64(3), 3),
        (float, 3, 3.0),
        (float, "1e-3", 0.001),
        (float, np.float32(0.5), 0.5),
        (bool, True, True),
        (bool, "Yes", True),
        (bool, "false", False),
        (bool, "0", False),
        (str, "word", "word"),
        (Count, "1", 1),
        (Whole, 0, 0),
        (NonNegative, "0", 0.0),
        (Fraction, 1, 1.0),
        (Fraction, "0", 0.0),
        (Words, "adam", "adam"),
        (Literal[1, 2], "2", 2),
        (Count | None, None, None),
        (Count | None, "None", None),
        (Count | None, "4", 4),
        (tuple[Count, ...], "400,400", (400, 400)),
        (tuple[Count, ...], "400, 400", (400, 400)),
        (tuple[Count, ...], 7, (7,)),
        (tuple[Count, ...], [1, "2"], (1, 2)),
        (tuple[Count, ...], range(1, 3), (1, 2)),
        (tuple[Count, ...], (), ()),
        (tuple[float, ...] | None, "0,90", (0.0, 90.0)),
        (tuple[float, ...] | None, "none", None),
        (Mixed, "random", "random"),
        (Mixed, "3,1", (3, 1)),
        (Any, object, object),
    ],
)
def test_what_fits(kind, given, value):
    got = fit(kind, given)
    assert got == value and type(got) is type(value)


@pytest.mark.parametrize(
    ("kind", "given", "words"),
    [
        (int, "three", "a whole number"),
        (int, 2.5, "a whole number"),
        (int, "2.0", "a whole number"),
        (int, True, "a whole number"),
        (int, None, "a whole number"),
        (int, [1], "a whole number"),
        (int, math.inf, "a whole number"),
        (float, "fast", "a number"),
        (float, "nan", "a number"),
        (float, "inf", "a number"),
        (float, -math.inf, "a number"),
        (float, False, "a number"),
        (float, 1j, "a number"),
        (bool, 1, "true or false"),
        (bool, "maybe", "true or false"),
        (str, 3, "a word"),
        (Count, 0, "a whole number >= 1"),
        (Whole, "-1", "a whole number >= 0"),
        (Positive, 0, "a number > 0"),
        (Positive, "inf", "a number > 0"),
        (Positive, math.nan, "a number > 0"),
        (NonNegative, -1e-9, "a number >= 0"),
        (Fraction, 1.01, "a number from 0 to 1"),
        (BelowOne, 1, "a number from 0 to below 1"),
        (Annotated[float, Range(0, 1, strict=True)], 0, "a number above 0 to 1"),
        (Words, "adma", "one of sgd, adam"),
        (Words, None, "one of sgd, adam"),
        (Count | None, 0, "a whole number >= 1 or none"),
        (tuple[Count, ...], "400,", "a whole number >= 1, or several separated by commas"),
        (tuple[Count, ...], "", "a whole number >= 1, or several separated by commas"),
        (tuple[Count, ...], (4, 0), "a whole number >= 1, or several separated by commas"),
        (tuple[float, ...] | None, "x", "a number, or several separated by commas or none"),
        (Mixed, "rnadom", "one of natural, random or a whole number >= 0, or several separated by commas"),
    ],
)
def test_what_does_not_fit_and_what_was_expected(kind, given, words):
    with pytest.raises(settings._Unfit):
        fit(kind, given)
    assert expected(kind) == words


@dataclass
class Recipe:
    """A recipe.

    With a second paragraph.
    """

    strength: NonNegative = 10.0  # λ: how much it pulls
    layers: tuple[Count, ...] = (100,)  # units, # of each
    rule: Words = "sgd"
    state: int = field(default=0, init=False)  # not a setting
    notes: tuple[str, ...] = field(default_factory=tuple)  # made anew


@dataclass
class Derived(Recipe):
    rule: Words = "adam"  # which step
    more: bool = False  # said below


class Bare:
    pass


def test_settings_are_the_constructors_fields():
    assert "state" in settings.faults_in(Recipe, {"state": 3}, "it")[0]
    assert list(settings.hints(Recipe)) == ["strength", "layers", "rule", "notes"]
    assert settings.defaults(Recipe) == {"strength": 10.0, "layers": (100,), "rule": "sgd", "notes": ()}
    assert settings.hints(Bare) == settings.defaults(Bare) == {}


def test_comments_are_help_texts():
    assert settings.comments(Recipe) == {
        "strength": "λ: how much it pulls",
        "layers": "units, # of each",
        "rule": "",
        "notes": "made anew",
    }
    inherited = settings.comments(Recipe)
    assert settings.comments(Derived) == inherited | {"rule": "which step", "more": "said below"}


def test_all_faults_come_at_once():
    given = {"strenght": 1, "strength": -1, "rule": "adma", "layers": "3,0", "zzzz": 0}
    with pytest.raises(BadInput) as caught:
        settings.make(Recipe, given, "method 'recipe'")
    assert caught.value.faults == (
        "unknown setting 'strenght' of method 'recipe'; did you mean 'strength'?",
        "strength of method 'recipe' must be a number >= 0, not -1",
        "rule of method 'recipe' must be one of sgd, adam, not 'adma'",
        "layers of method 'recipe' must be a whole number >= 1, or several separated by commas, not '3,0'",
        "unknown setting 'zzzz' of method 'recipe'; choose from layers, notes, rule, strength",
    )
    assert str(caught.value) == "\n".join(caught.value.faults)


def test_a_thing_without_settings_says_so():
    assert settings.faults_in(Bare, {"lr": 1}, "method 'bare'") == [
        "unknown setting 'lr': method 'bare' has no settings"
    ]


def test_provenance_says_who_chose_what():
    made = settings.make(Recipe, {"strength": "10", "rule": "adam"}, "method 'recipe'")
    assert (made.strength, made.rule) == (10.0, "adam")
    assert settings.provenance(made) == {
        "strength": {"value": 10.0, "chosen_by": "given"},  # also when it equals the default
        "layers": {"value": (100,), "chosen_by": "default"},
        "rule": {"value": "adam", "chosen_by": "given"},
        "notes": {"value": (), "chosen_by": "default"},
    }
    settings.choose(made, {"strength": "val:task"})
    assert [p["chosen_by"] for p in settings.provenance(made).values()] == ["val:task", "default", "given", "default"]


def test_provenance_of_what_a_user_constructed():
    by = {name: p["chosen_by"] for name, p in settings.provenance(Recipe(strength=3, layers=(100,))).items()}
    assert by == {"strength": "given", "layers": "default", "rule": "default", "notes": "default"}

    @dataclass
    class Required:
        size: int | None

    assert settings.provenance(Required(None))["size"]["chosen_by"] == "given"


def test_frozen_recipes_remember_too_and_do_not_share():
    one, two = protocols.make("online", {"lr": 0.1}), protocols.make("online", {"batch": 5})
    assert settings.provenance(one)["lr"]["chosen_by"] == "given"
    assert settings.provenance(two)["lr"]["chosen_by"] == "default"
    assert one == replace(two, batch=10)


@pytest.mark.parametrize("shelf", SHELVES, ids=lambda shelf: shelf.word)
def test_everything_on_a_shelf_can_be_made_and_explains_itself(shelf):
    assert shelf.names() == sorted(shelf.names())
    assert not {"base", "session", "common"} & set(shelf.names())
    for name in shelf.names():
        cls = shelf.find(name)
        assert isinstance(shelf.make(name, {}), shelf.base)
        assert shelf.summary(name).endswith((".", ":")) or len(shelf.summary(name)) > 20
        assert all(settings.comments(cls).values()), f"a setting of {name} has no comment"
        assert not settings.faults_in(cls, settings.defaults(cls), name), f"a default of {name} does not fit"


@pytest.mark.parametrize("shelf", SHELVES, ids=lambda shelf: shelf.word)
def test_unknown_names_get_the_nearest(shelf):
    name = shelf.names()[0]
    with pytest.raises(BadInput, match=f"unknown {shelf.word} '{name}x'; did you mean '{name}'"):
        shelf.find(name + "x")
    with pytest.raises(BadInput, match=f"unknown {shelf.word} 'base'"):
        shelf.find("base")


# Seeds


def test_seeds_depend_on_every_name_and_key_and_on_nothing_else():
    seeds = [
        seed_for(0), seed_for(1), seed_for(0, "a"), seed_for(0, "b"), seed_for(0, "a", "b"), seed_for(0, "ab"),
        seed_for(0, "a", task=1), seed_for(0, "a", task=2), seed_for(0, "a", t=1), seed_for(0, "a", task="1"),
    ]  # fmt: skip
    assert len(set(seeds)) == len(seeds)
    assert seed_for(0, "a", task=1, part=2) == seed_for(0, "a", part=2, task=1)
    assert all(0 <= s < 2**63 for s in seeds)
    assert seed_for(0, "permuted", task=3) == 1738154852734822865  # published results stand on these numbers


def test_generators_and_seeded_blocks_leave_the_global_generator_alone():
    state = torch.get_rng_state()
    first = torch.rand(3, generator=generator(0, "a"))
    with seeded(5):
        inside = torch.rand(3)
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(torch.rand(3, generator=generator(0, "a")), first)
    with seeded(5):
        assert torch.equal(torch.rand(3), inside)
    with pytest.raises(ZeroDivisionError), seeded(5):
        1 / int(torch.zeros(()))
    assert torch.equal(torch.get_rng_state(), state)
