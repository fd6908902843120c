"""Sweeps of the study: both languages in the original's way, and Python alone where C++ is not built."""

from experiments.design.sweep import Windows
from experiments.studies.greeter import GREETER, design
from experiments.studies.greeter.design import LABELS, cold, greeter
from tests.unit.experiments.studies.greeter.judgements import ALONE, SCALE


def test_every_client_makes_the_originals_calls() -> None:
    """Every client makes the original's calls, in windows and in cold runs, at every profile."""
    for scale in GREETER.scales.values():
        turns = greeter(scale).turns
        assert isinstance(turns, Windows)
        assert turns.calls == design.CALLS
        assert {cell.calls for cell in cold(scale).cells} == {design.CALLS}


def test_each_language_has_the_same_arms_and_comparisons() -> None:
    """Each language has the same arms and comparisons, apart from those between the two."""
    names = {each.name for each in greeter(SCALE).comparisons if each.kind != "same"}
    for language in LABELS:
        assert {f"{kind}_{language}" for kind in ("clients", "style", "in_flight")} <= names
    own = [
        [arm.setting.but(language="cpp") for arm in greeter(SCALE).arms if arm.setting["language"] == each]
        for each in LABELS
    ]
    assert set(own[0]) == set(own[1])


def test_python_alone_is_measured_where_the_peer_is_not_built() -> None:
    """Without the C++ peer Python has the same arms as beside it, except the lean client's."""
    sweep = greeter(ALONE)
    assert {arm.setting["language"] for arm in sweep.arms} == {"python"}
    assert set(sweep.arms) < set(greeter(SCALE).arms)
    assert {cell.setting["language"] for cell in cold(ALONE).cells} == {"python"}
