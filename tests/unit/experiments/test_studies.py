"""The studies' designs: what each part varies, and what it must not."""

import dataclasses
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from experiments.design import LOOKUP_AND_TRADE, TRADE, Setting
from experiments.gates.machine_gates import AA_MIN
from experiments.studies import STUDIES, experiments
from experiments.studies.server_cost import SERVER_COST
from experiments.studies.stock import CATALOG, STOCK
from experiments.study import Profile, Scale, Study
from stock_service.rpc.concurrency import EXECUTORS
from stock_service.rpc.transports import TRANSPORTS
from stock_service.trading import catalog_file
from stock_service.trading.locking import LOCKINGS

SCALE = Scale((1, 2, 3, 4, 5), Profile(blocks=9, warm_up_s=0.2, duration_s=0.8))
EXTENSIONS = (
    "socket_trade",
    "pool_by_clients",
    "dispatch",
    "connection_policy",
    "updater",
    "lock_strategies",
    "offered_load",
    "client_kind",
    "same_again",
)


def settings(part: str, scale: Scale = SCALE) -> tuple[Setting, ...]:
    """The settings of a part of the study ``stock``."""
    return STOCK.parts[part].settings(scale)


def varied(group: Iterable[Setting]) -> set[str]:
    """The fields in which settings differ."""
    found: dict[str, set[object]] = {}
    for setting in group:
        for field in dataclasses.fields(setting):
            found.setdefault(field.name, set()).add(getattr(setting, field.name))
    return {name for name, levels in found.items() if len(levels) > 1}


def at(part: str, clients: int) -> Setting:
    """A part's only setting with so many clients."""
    (found,) = (setting for setting in settings(part) if setting.clients == clients)
    return found


@pytest.mark.parametrize("clients", [1, 2, 3, 4, 5])
def test_arms_that_are_compared_differ_in_the_declared_factor_alone(clients: int) -> None:
    """Sockets against gRPC in the transport, Lookup against Trade in the mix, the small pool against the large one."""
    assert varied([at("figure_2", clients), at("figure_4", clients)]) == {"part", "transport"}
    assert varied([at("figure_2", clients), at("figure_3", clients)]) == {"part", "mix"}
    assert varied([at("figure_4", clients), at("figure_5", clients)]) == {"part", "workers"}


@pytest.mark.parametrize(
    ("part", "factors"),
    [
        ("figure_1", {"clients"}),
        ("figure_5", {"clients"}),
        ("locks", {"locking", "transport"}),
        ("pool_by_clients", {"workers", "clients"}),
        ("dispatch", {"dispatch", "clients"}),
        ("connection_policy", {"transport", "connection", "clients"}),
        ("updater", {"transport", "updater", "clients"}),
        ("lock_strategies", {"locking", "mix", "clients"}),
        ("socket_trade", {"transport", "mix", "clients"}),
        ("stages", {"transport", "clients"}),
        ("client_kind", {"transport", "client", "clients"}),
        ("offered_load", {"transport", "rate_hz"}),
        ("same", {"transport", "clients"}),
    ],
)
def test_a_part_varies_its_factors_and_nothing_else(part: str, factors: set[str]) -> None:
    """Nothing comes along with a factor unseen."""
    assert varied(settings(part)) == factors


def test_the_five_figures_are_those_of_the_original() -> None:
    """Clients 1 to 5, and 1 to 10 past a pool of 5; transport, mix and updater as its captions say."""
    assert [setting.clients for setting in settings("figure_1")] == [1, 2, 3, 4, 5]
    assert [setting.clients for setting in settings("figure_5")] == list(range(1, 11))
    one, three, four, five = (at(part, 1) for part in ("figure_1", "figure_3", "figure_4", "figure_5"))
    assert (one.transport, one.mix, one.updater) == ("grpc", LOOKUP_AND_TRADE, True)
    assert (three.transport, three.mix, three.updater) == ("grpc", TRADE, False)
    assert four.workers > max(setting.clients for setting in settings("figure_4"))
    assert (five.transport, five.workers) == ("sockets", 5)


def test_the_pool_stays_larger_than_the_clients_where_it_is_not_to_matter() -> None:
    """With 12 clients asked for, too; and figure 5 still goes past its pool with two."""
    many, few = Scale((12,), SCALE.profile), Scale((1, 2), SCALE.profile)
    assert settings("figure_4", many)[0].workers == settings("figure_2", many)[0].workers == 24
    assert max(setting.clients for setting in settings("figure_5", few)) == 10


def test_every_setting_can_be_served() -> None:
    """Its transport, executor and locking are in the service's tables, and no setting is there twice."""
    for study in STUDIES.values():
        found = [setting for part in study.parts.values() for setting in part.settings(SCALE)]
        assert {setting.transport for setting in found} <= set(TRANSPORTS)
        assert {setting.executor for setting in found} <= set(EXECUTORS)
        assert {setting.locking for setting in found} <= set(LOCKINGS)
        assert len(set(found)) == len(found)


def test_lock_waits_are_timed_only_where_they_are_asked_for() -> None:
    """Timing costs: it is in no figure of latency, and in every run of the lock parts."""
    timed = {part for part in STOCK.parts for setting in settings(part) if setting.lock_waits}
    assert timed == {"locks", "lock_strategies"}


def test_stages_are_stamped_and_rates_are_given_only_where_they_are_asked_for() -> None:
    """Stamping costs, and an open loop is no closed one: neither is in a figure of the original."""
    assert {part for part in STOCK.parts for setting in settings(part) if setting.timeline} == {"stages"}
    assert {part for part in STOCK.parts for setting in settings(part) if setting.loop == "open"} == {"offered_load"}
    assert {setting.client for part in STOCK.main for setting in settings(part)} == {"library"}
    assert {setting.clients * setting.connections for setting in settings("offered_load")} == {16}
    rates = {name: [s.rate_hz or 0.0 for s in settings("offered_load") if s.transport == name] for name in TRANSPORTS}
    assert all(len(of) >= 6 and of == sorted(of) and of[-1] >= 10 * of[0] for of in rates.values())


def test_the_stages_are_seen_below_at_and_past_the_pool() -> None:
    """Whatever numbers of clients are asked for."""
    for scale in (SCALE, Scale((2,), SCALE.profile)):
        found = settings("stages", scale)
        assert {setting.workers for setting in found} == {5}
        assert sorted({setting.clients for setting in found}) == [1, 5, 10]


def test_what_is_run_once_more_is_the_very_same_but_for_its_name() -> None:
    """So that every difference between the two is a false one: with the figures, and beside an extension alone."""

    def bare(part: str) -> set[Setting]:
        return {dataclasses.replace(setting, part="") for setting in settings(part)}

    assert bare("same") == bare("same_again") <= bare("figure_2") | bare("figure_4")
    with_figures = {setting.part for setting in STOCK.design(STOCK.main, SCALE, seed=1).settings}
    assert with_figures == set(STOCK.main)
    alone = {setting.part for setting in STOCK.design(("dispatch",), SCALE, seed=1).settings}
    assert alone == {"dispatch", "same", "same_again"}
    again = STOCK.design(("same_again",), SCALE, seed=1).settings
    assert len(again) == len(set(again)) == 2 * len(settings("same"))


@pytest.mark.parametrize("study", STUDIES.values(), ids=STUDIES)
def test_a_part_says_whether_it_has_the_numbers_of_clients_that_are_asked_for(study: Study) -> None:
    """Asked for one or for two, a part that has its own is the same, and every other is not."""
    for name, part in study.parts.items():
        one, two = (
            [setting.clients for setting in part.settings(dataclasses.replace(SCALE, clients=(clients,)))]
            for clients in (1, 2)
        )
        assert part.varies_clients == (one != two), name


@pytest.mark.parametrize("parts", [STOCK.main, ("dispatch",)])
def test_two_numbers_of_clients_make_the_aa_comparisons_that_a_sweep_needs(parts: tuple[str, ...]) -> None:
    """And one makes too few: each is of a setting of ``same``."""
    for clients, enough in (((5,), False), ((1, 5), True), ((1, 2, 3, 4, 5), True)):
        settings = STOCK.design(parts, dataclasses.replace(SCALE, clients=clients), seed=1).settings
        assert (sum(setting.part == "same" for setting in settings) >= AA_MIN) == enough


def test_everything_that_is_asked_for_can_be_run_by_name() -> None:
    """Each study's main parts by its name; each extension of the stock study by its own."""
    found = experiments()
    assert set(found) == {*STUDIES, *EXTENSIONS}
    figures = ("figure_1", "figure_2", "figure_3", "figure_4", "figure_5")
    assert found["stock"].parts == (*figures, "locks", "stages", "same")
    assert found["dispatch"].parts == ("dispatch",)


@pytest.mark.parametrize("study", STUDIES.values(), ids=STUDIES)
def test_every_study_has_the_three_profiles(study: object) -> None:
    """Each at least as long as the one before."""
    assert study in (STOCK, SERVER_COST)
    profiles = STUDIES[getattr(study, "name")].profiles  # noqa: B009
    lengths = [profile.blocks * (profile.warm_up_s + profile.duration_s) for profile in profiles.values()]
    assert list(profiles) == ["smoke", "quick", "paper"]
    assert lengths == sorted(lengths)


def test_no_run_reaches_the_limits_of_the_experiments_catalog() -> None:
    """The default stocks and prices; a million trades a second of a thousand shares for an hour fit."""
    stocks = catalog_file.load(CATALOG)
    default = catalog_file.DEFAULT_STOCKS
    assert [(stock.name, stock.price_cents) for stock in stocks] == [(s.name, s.price_cents) for s in default]
    assert min(stock.volume_limit for stock in stocks) > 1_000_000 * 1_000 * 3600 / 4


def test_the_idle_servers_stand_alone_and_the_rest_is_compared() -> None:
    """Idle is watched once for its own length, and the echo differs from Lookup in nothing below the service."""
    design = SERVER_COST.design(SERVER_COST.main, SCALE, seed=1)
    assert {setting.part for setting in design.once} == {"idle"}
    assert {setting.duration_s for setting in design.once} == {60.0}
    lookup, echo = SERVER_COST.parts["lookup"].settings(SCALE), SERVER_COST.parts["echo"].settings(SCALE)
    for one, other in zip(lookup, echo, strict=False):
        assert varied([one, other]) == {"part", "service", "mix"}
    assert varied(lookup) == {"transport", "executor"}


def test_the_example_of_a_study_has_the_profile_that_run_takes_unless_told() -> None:
    """As CONTRIBUTING has it: its settings can be made, in the smoke profile and in the quick one."""
    text = (Path(__file__).resolve().parents[3] / ".github" / "CONTRIBUTING.md").read_text()
    (example,) = (block for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL) if "WORKERS = Study" in block)
    names: dict[str, Any] = {}
    exec(example, names)
    workers: Study = names["WORKERS"]
    for profile in ("smoke", "quick"):
        scale = Scale((1, 2), workers.profiles[profile])
        assert len(workers.design(workers.main, scale, seed=1).settings) == 8
