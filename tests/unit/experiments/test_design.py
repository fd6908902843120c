"""Designs: what is run, and in which order."""

import dataclasses
from collections import Counter

import pytest

from experiments.design import LOOKUP_AND_TRADE, TRADE, Design, Factor, Setting, cross, mix_text

BASE = Setting("figure_2", warm_up_s=0.1, duration_s=0.5)
GRID = cross(BASE, Factor("clients", (1, 2, 3)), Factor("transport", ("grpc", "sockets")))


def test_crossing_factors_gives_every_combination_once_the_last_changing_fastest() -> None:
    """Three levels by two are six settings."""
    pairs = [(setting.clients, setting.transport) for setting in GRID]
    assert pairs == [(1, "grpc"), (1, "sockets"), (2, "grpc"), (2, "sockets"), (3, "grpc"), (3, "sockets")]


def test_crossing_leaves_every_other_factor_alone() -> None:
    """Two arms differ in nothing but the factors declared."""
    changed = dataclasses.replace(BASE, clients=3, transport="sockets")
    assert GRID[-1] == changed


def test_a_factor_that_no_setting_has_is_refused() -> None:
    """By its name."""
    with pytest.raises(TypeError, match="colour"):
        cross(BASE, Factor("colour", ("red",)))


def test_every_setting_is_run_once_in_every_block() -> None:
    """No more and no less."""
    runs = Design(GRID, blocks=4, seed=1).runs()
    counts = Counter((run.block, run.setting) for run in runs)
    assert counts == {(block, setting): 1 for block in (1, 2, 3, 4) for setting in GRID}


def test_a_block_is_finished_before_the_next_begins_and_its_runs_are_numbered() -> None:
    """From 1, with an id each."""
    runs = Design(GRID, blocks=3, seed=1).runs()
    assert [(run.block, run.order) for run in runs] == [(b, o) for b in (1, 2, 3) for o in range(1, 7)]
    assert len({run.run_id for run in runs}) == len(runs)


def test_blocks_have_orders_of_their_own() -> None:
    """Four blocks of six settings, four orders."""
    runs = Design(GRID, blocks=4, seed=1).runs()
    orders = {tuple(run.setting for run in runs if run.block == block) for block in (1, 2, 3, 4)}
    assert len(orders) == 4


def test_over_many_blocks_no_setting_keeps_to_one_place() -> None:
    """Order is not confounded with an arm: every setting has each of six places in about a sixth of 600 blocks."""
    runs = Design(GRID, blocks=600, seed=7).runs()
    places = Counter((run.setting, run.order) for run in runs)
    assert len(places) == 36
    assert min(places.values()) > 60
    assert max(places.values()) < 140


def test_the_same_seed_gives_the_same_runs_and_another_seed_others() -> None:
    """So that a sweep can be resumed."""
    design = Design(GRID, blocks=2, seed=5)
    assert design.runs() == design.runs()
    assert design.runs() != Design(GRID, blocks=2, seed=6).runs()


def test_a_setting_that_stands_alone_is_run_in_the_first_block_only() -> None:
    """The rest is run in all of them."""
    idle = dataclasses.replace(BASE, part="idle", clients=0)
    runs = Design(GRID, blocks=3, seed=1, once=(idle,)).runs()
    assert [run.block for run in runs if run.setting == idle] == [1]
    assert len(runs) == 3 * len(GRID) + 1


def test_a_mix_of_one_is_its_name_and_of_several_the_weights() -> None:
    """As the load client takes it."""
    assert mix_text(TRADE) == "trade"
    assert mix_text(LOOKUP_AND_TRADE) == "lookup=0.5,trade=0.5"
