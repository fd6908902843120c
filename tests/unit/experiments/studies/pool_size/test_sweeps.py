"""Sweeps of the study, at each scale."""

from dataclasses import replace

import pytest

from experiments.commands import estimate
from experiments.commands.recording import FIRST_BLOCKS
from experiments.design.arms import Arm
from experiments.design.sweep import SERVERS_MAX, Windows
from experiments.studies.pool_size import POOL_SIZE
from experiments.studies.pool_size.design import SHARES, basis, pool_lookups, pool_one, pool_size, work_of
from experiments.studies.study import Scale
from tests.unit.experiments.studies.pool_size.planted import SCALE, told


@pytest.mark.parametrize("scale", POOL_SIZE.scales.values(), ids=POOL_SIZE.scales)
def test_servers_start_in_turn_where_there_are_many(scale: Scale) -> None:
    """Fewer servers are alive at once than the sweep has."""
    sweep = pool_size(scale)
    assert isinstance(sweep.turns, Windows)
    assert sweep.turns.in_turn
    assert sweep.alive <= SERVERS_MAX
    assert sweep.alive < len(sweep.servers)


def test_quick_takes_under_a_quarter_of_an_hour() -> None:
    """The estimate of ``quick``, with its companions, is under the quarter of an hour of its page: repeated blocks and
    slow starts take the rest."""
    first = FIRST_BLOCKS * estimate.block_s(pool_one(SCALE))
    own, after = pool_size(SCALE), pool_lookups(SCALE)
    in_all = sum(each.looks[-1] * estimate.block_s(each) for each in (own, after))
    assert first + in_all + estimate.REPORT_S < 690


def test_an_open_loop_is_due_at_shares_of_what_was_foretold() -> None:
    """An open loop is due at shares of its prediction. Before the prediction there are as many arms."""
    scale = replace(SCALE, foretell=lambda setting: told(Arm(setting)))
    opened = [arm.setting for arm in pool_size(scale).arms if arm.setting["rate_hz"] is not None]
    shares = {round(float(str(each["rate_hz"])) / told(Arm(each.but(rate_hz=None))).capacity_hz, 2) for each in opened}
    assert shares == set(SHARES)
    assert len(opened) == sum(arm.setting["rate_hz"] is not None for arm in pool_size(SCALE).arms)


@pytest.mark.parametrize("scale", POOL_SIZE.scales.values(), ids=POOL_SIZE.scales)
def test_a_block_has_all_that_its_predictions_rest_on(scale: Scale) -> None:
    """Each arm of the sweep has its basis in the same block."""
    arms = set(pool_size(scale).arms)
    assert {arm for each in arms for arm in basis(each.setting)} <= arms
    assert set(pool_one(scale).arms) <= arms


def test_only_what_can_use_several_cores_is_free_on_all() -> None:
    """An arm is free on all cores if it has a hash, several processes or no GIL. Predictions rely on this."""
    arms = pool_size(POOL_SIZE.scales["paper"]).arms
    bases = {each for arm in arms for each in basis(arm.setting)}
    for arm in (each for each in arms if each not in bases):
        several = arm.setting["processes"] == 2 or arm.setting["build"] == "free-threaded"
        assert (arm.setting["placement"] == "free") == (several or work_of(arm.setting).hash_ms > 0)
