"""The predicates of sentences: borne out by every cell of a table, or contradicted by those that say otherwise."""

import math
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.gates.predicates import (
    AlwaysBelow,
    BecauseOf,
    BelowIn,
    Cell,
    EveryWithin,
    FallsWith,
    GrowsWith,
    NoDifference,
    Predicate,
    Shows,
    Strong,
    TablePredicate,
    backs,
    contradictions,
    strong_words,
)
from experiments.stats import Verdict

VALUES = st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=8)
RUST_BELOW_GO = AlwaysBelow("language", "rust", "go")


def line(values: list[float], **others: str) -> tuple[Cell, ...]:
    """A value for each number of clients, from 1."""
    return tuple(Cell({"clients": clients, **others}, value) for clients, value in enumerate(values, 1))


def pairs(values: list[tuple[float, float]]) -> tuple[Cell, ...]:
    """A value of Rust and one of Go for each pool."""
    return tuple(
        Cell({"language": language, "pool": pool}, value)
        for pool, pair in enumerate(values, 1)
        for language, value in zip(("rust", "go"), pair, strict=True)
    )


@settings(max_examples=40)
@given(VALUES)
def test_growth_is_contradicted_by_each_step_that_does_not_go_up(values: list[float]) -> None:
    """As many contradictions as such steps, whatever the order of the cells."""
    wrong = sum(after <= before for before, after in pairwise(values))
    assert len(contradictions(GrowsWith("clients"), line(values))) == wrong
    assert len(contradictions(GrowsWith("clients"), line(values)[::-1])) == wrong


@settings(max_examples=40)
@given(VALUES)
def test_a_fall_is_growth_upside_down(values: list[float]) -> None:
    """The same steps contradict it when every sign is turned."""
    turned = [-value for value in values]
    falling = contradictions(FallsWith("clients"), line(values))
    assert len(falling) == len(contradictions(GrowsWith("clients"), line(turned)))


@settings(max_examples=40)
@given(st.lists(st.tuples(st.floats(0, 1e6), st.floats(0, 1e6)), min_size=1, max_size=12))
def test_always_and_in_so_many_of_so_many_agree(values: list[tuple[float, float]]) -> None:
    """Always holds just where the count is all; each pair that is not below is named; only the true count holds."""
    cells = pairs(values)
    below = sum(rust < go for rust, go in values)
    assert len(contradictions(RUST_BELOW_GO, cells)) == len(values) - below
    for count in range(len(values) + 1):
        found = contradictions(BelowIn("language", "rust", "go", count, len(values)), cells)
        assert (found == []) is (count == below)
    assert contradictions(BelowIn("language", "rust", "go", below, len(values) + 1), cells)


def test_growth_is_asked_of_every_line_of_a_table() -> None:
    """Rising on gRPC, falling on sockets."""
    cells = line([1.0, 2.0, 3.0], transport="grpc") + line([1.0, 3.0, 2.0], transport="sockets")
    assert contradictions(GrowsWith("clients"), cells) == ["transport=sockets: from clients 2 to 3 it goes from 3 to 2"]


def test_levels_are_ordered_as_numbers() -> None:
    """10 comes after 2."""
    cells = tuple(Cell({"clients": clients}, float(clients)) for clients in (10, 2, 1))
    assert contradictions(GrowsWith("clients"), cells) == []


def test_a_missing_partner_contradicts_always() -> None:
    """What cannot be checked is not "always"."""
    cells = pairs([(1.0, 2.0), (1.0, 2.0)])
    assert contradictions(RUST_BELOW_GO, cells[:-1]) == ["pool=2: go is missing"]
    assert contradictions(RUST_BELOW_GO, cells[1:]) == ["pool=1: rust is missing"]


@pytest.mark.parametrize(
    ("claim", "cells"),
    [
        (RUST_BELOW_GO, pairs([(math.nan, 2.0)])),
        (RUST_BELOW_GO, pairs([(1.0, math.nan)])),
        (GrowsWith("clients"), line([1.0, math.nan])),
        (FallsWith("clients"), line([2.0, math.nan])),
        (EveryWithin(0.0, 1.0), line([0.5, math.nan])),
    ],
)
def test_a_value_that_is_no_number_bears_nothing_out(claim: TablePredicate, cells: tuple[Cell, ...]) -> None:
    """It contradicts."""
    assert contradictions(claim, cells)


@pytest.mark.parametrize(
    "claim",
    [
        RUST_BELOW_GO,
        BelowIn("language", "rust", "go", 0, 0),
        GrowsWith("clients"),
        FallsWith("clients"),
        EveryWithin(0.0, 1.0),
    ],
)
def test_nothing_bears_out_nothing(claim: TablePredicate) -> None:
    """A table without a cell of the claim contradicts it."""
    assert contradictions(claim, ()) == ["the table has no cell that it speaks of"]


def test_one_level_shows_no_growth() -> None:
    """There is no step."""
    assert contradictions(GrowsWith("clients"), line([1.0]))


def test_within_includes_its_ends() -> None:
    """And names what is outside."""
    assert contradictions(EveryWithin(1.0, 2.0), line([1.0, 1.5, 2.0])) == []
    assert contradictions(EveryWithin(1.0, 2.0), line([0.9, 2.1])) == [
        "clients=1: 0.9 is not within 1 to 2",
        "clients=2: 2.1 is not within 1 to 2",
    ]


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("Rust is always faster.", {Strong.UNIVERSAL}),
        ("In every case it is lower, never higher.", {Strong.UNIVERSAL}),
        ("Latency grows with the clients.", {Strong.MONOTONE}),
        ("Latency increases steadily as clients do.", {Strong.MONOTONE}),
        ("There is no significant difference.", {Strong.ALIKE}),
        ("They take the same time.", {Strong.ALIKE}),
        ("Sockets are as fast as gRPC.", {Strong.ALIKE}),
        ("Faster because of the lock.", {Strong.CAUSE}),
        ("Always slower due to locking.", {Strong.UNIVERSAL, Strong.CAUSE}),
        ("Rust is not always faster.", set()),
        ("They are not equally fast.", set()),
        ("A connection for every request, in the same block, on the same machine.", set()),
        ("Latency grows from 1 to 5 clients.", set()),
        ("Sockets take less time than gRPC.", set()),
    ],
)
def test_strong_words_are_found(text: str, kinds: set[Strong]) -> None:
    """What claims more than single numbers show; not what denies it."""
    assert {kind for kind, _ in strong_words(text)} == kinds


@pytest.mark.parametrize(
    ("claim", "kinds"),
    [
        (RUST_BELOW_GO, {Strong.UNIVERSAL}),
        (EveryWithin(0, 1), {Strong.UNIVERSAL}),
        (GrowsWith("clients"), {Strong.UNIVERSAL, Strong.MONOTONE}),
        (FallsWith("clients"), {Strong.UNIVERSAL, Strong.MONOTONE}),
        (BelowIn("language", "rust", "go", 1, 2), set()),
        (NoDifference(), {Strong.ALIKE}),
        (Shows(Verdict.EQUIVALENT), {Strong.ALIKE}),
        (Shows(Verdict.FASTER), set()),
        (Shows(Verdict.INCONCLUSIVE), set()),
        (BecauseOf("locking"), {Strong.CAUSE}),
    ],
)
def test_a_predicate_backs_the_words_that_it_checks(claim: Predicate, kinds: set[Strong]) -> None:
    """And no others."""
    assert {kind for kind in Strong if backs(claim, kind)} == kinds
