"""Several runs together: random effects against a published example and a simulation, and the joint results."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pytest

from experiments.__main__ import main
from experiments.commands.agree import HEAD
from experiments.commands.agree import table as agree
from experiments.design.arms import Arm, Group
from experiments.design.limits import LIMITS
from experiments.design.setting import read
from experiments.design.sweep import Sweep
from experiments.judge.agreement import (
    NO_FINGERPRINT,
    agreements,
    deviation,
    differences,
    pooled,
    tau_squared,
    with_deviation,
)
from experiments.judge.verdicts import Judged, Judgement, judge
from experiments.results import environment, files
from experiments.results.earlier import EarlierRun, Ratio, load
from experiments.results.fingerprint import taken
from experiments.show.sentences import listed, ratio_sentence, reach_of_all
from stock_service.rpc.errors import UsageError
from tests.unit.experiments.judge.synthetic_blocks import GRPC, SOCKETS, block, blocks, ratio, sweep
from tests.unit.experiments.known import known
from tests.unit.experiments.show.test_report import MACHINE

HERE = taken()
"""The sources of this version."""

BCG = (
    (4, 119, 11, 128),
    (6, 300, 29, 274),
    (3, 228, 11, 209),
    (62, 13536, 248, 12619),
    (33, 5036, 47, 5761),
    (180, 1361, 372, 1079),
    (8, 2537, 10, 619),
    (505, 87886, 499, 87892),
    (29, 7470, 45, 7232),
    (17, 1699, 65, 1600),
    (186, 50448, 141, 27197),
    (5, 2493, 3, 2338),
    (27, 16886, 29, 17825),
)
"""The trials of the BCG vaccine: ill and well with it, ill and well without (Colditz et al., JAMA 271, 1994)."""


def test_the_published_example_comes_out() -> None:
    """R's metafor gives tau² = 0.3181 by Paule and Mandel's method for these log risk ratios, and -0.715 as mean."""
    values = [math.log(a / (a + b) * (c + d) / c) for a, b, c, d in BCG]
    variances = [1 / a - 1 / (a + b) + 1 / c - 1 / (c + d) for a, b, c, d in BCG]
    assert tau_squared(values, variances) == pytest.approx(0.3181, abs=5e-5)
    found = pooled(values, variances)
    assert math.log(found.ratio.value) == pytest.approx(-0.715, abs=1e-3)
    weights = [1 / (each + 0.3181) for each in variances]
    half = 2.178813 * sum(weights) ** -0.5  # Student's t, 12 degrees of freedom
    assert math.log(found.ratio.high / found.ratio.value) == pytest.approx(half, rel=1e-3)
    reach = 2.200985 * math.sqrt(0.3181 + 1 / sum(weights))  # 11
    assert math.log(known(found.predicted)[1] / found.ratio.value) == pytest.approx(reach, rel=1e-3)


def test_runs_that_differ_by_no_more_than_their_blocks_have_no_deviation() -> None:
    """Runs that differ by no more than their blocks have a deviation of 0, and the weighted mean."""
    found = pooled([0.10, 0.11, 0.09], [1e-3, 1e-3, 2e-3])
    assert found.tau == 0
    assert math.log(found.ratio.value) == pytest.approx((0.10 + 0.11 + 0.045) / 2.5)


def test_runs_that_are_sure_differ_by_their_deviation() -> None:
    """Runs without errors of their own have the standard deviation as tau. Two runs have no tau. One run is refused."""
    values = [math.log(0.26), math.log(0.30), math.log(0.14)]
    found = pooled(values, [0.0, 0.0, 0.0])
    assert found.tau == pytest.approx(np.std(values, ddof=1), rel=1e-6)
    low, high = known(found.predicted)
    assert low < 0.14 < 0.30 < high
    far = [-0.8567819741873708, -1.5868002314794505, -0.544146791911042]  # rounding puts the root beyond its bound
    assert pooled(far, [0.0] * 3).tau == pytest.approx(np.std(far, ddof=1), rel=1e-6)
    two = pooled(values[:2], [0.0, 0.0])
    assert (two.tau, two.tau_high, two.predicted) == (None, None, None)
    with pytest.raises(ValueError, match="1 runs, needed: 2"):
        pooled(values[:1], [0.0])


@pytest.mark.slow
def test_intervals_hold_what_they_are_to() -> None:
    """Three limits hold in 1,500 simulations: the interval of the mean, the prediction, and the upper limit of tau."""
    k, tau, trials = 6, 0.05, 1500
    rng, held, predicted, limited = np.random.default_rng(k), 0, 0, 0
    for _ in range(trials):
        logs = rng.normal(0.3, tau, (k, 1)) + rng.normal(0, 0.06, (k, 10))
        found = pooled(logs.mean(axis=1).tolist(), (logs.var(axis=1, ddof=1) / 10).tolist())
        limited += tau <= known(found.tau_high)
        held += found.ratio.low <= math.exp(0.3) <= found.ratio.high
        low, high = known(found.predicted)
        predicted += low <= math.exp(rng.normal(0.3, tau)) <= high
    assert 0.93 <= held / trials <= 0.985
    assert 0.93 <= predicted / trials <= 0.99
    assert 0.92 <= limited / trials <= 0.97


def run(true: float, noise: float = 0.02, of: Sweep | None = None) -> Judgement:
    """Whole run with this true ratio."""
    chosen = of or sweep()
    means = dict.fromkeys(chosen.arms, 100.0) | {SOCKETS: 100 * true}
    return judge(chosen, blocks(chosen, means, 10, noise))


def test_a_headline_is_said_over_all_runs() -> None:
    """The sentence has the number of decided runs, the range and any contradiction; further families are not asked."""
    of = sweep(ratio(), ratio(name="further", family="further"))
    runs = [run(0.5, of=of), run(0.6, of=of), run(1.3, of=of), run(1.0, noise=1.0, of=of)]
    (found,) = agreements(runs, [HERE] * 4)
    assert found.comparison.name == "sockets ÷ gRPC"
    assert found.decided == 3
    assert found.contradictions == ((0, 2), (1, 2))
    assert [each.typical.value for each in found.judged] == pytest.approx([0.5, 0.6, 1.3, 1.0], rel=0.5)
    assert 0.2 < known(known(found.pooled).tau) < 1.0
    (alone,) = agreements([run(0.5)], [HERE])
    assert alone.pooled is None


def test_runs_of_several_versions_are_not_joined() -> None:
    """Runs are not joined if an arm has other sources, or a run has no fingerprint. A change outside both arms does not
    count."""
    runs, row = [run(0.5), run(2.0)], "stock_service/rpc/transports/{}/*.py"
    assert set(map(row.format, ("grpc_sync", "http1"))) <= HERE.keys()
    for other, apart in (
        (HERE | {row.format("http1"): "another"}, {}),
        (HERE | {row.format("grpc_sync"): "another"}, {1: ("stock_service/rpc/transports/grpc_sync",)}),
        (HERE | {"python": "3.99"}, {1: (f"python ({HERE['python']}, then 3.99)",)}),
        ({}, {1: (NO_FINGERPRINT,)}),
    ):
        (found,) = agreements(runs, [HERE, other])
        assert found.apart == apart
        assert (found.pooled is None) == bool(apart)
        assert found.contradictions == (() if apart else ((0, 1),))


FIVE = Arm(read("sockets clients=5"))


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (lambda of: replace(of, seed=9), ""),
        (lambda of: replace(of, rounds=16), "rounds 15 and 16"),
        (lambda of: replace(of, study="sort", looks=(10,)), "study try and sort"),
        (lambda of: replace(of, comparisons=(ratio(), ratio(name="new"))), "1 comparison, such as new"),
        (lambda of: replace(of, groups=(Group((SOCKETS, GRPC, FIVE)),)), "groups of arms"),
    ],
)
def test_sweeps_differ_in_what_is_named(changed: Callable[[Sweep], Sweep], said: str) -> None:
    """Differences of sweeps are named. A difference of seeds is none."""
    assert differences(sweep(), changed(sweep())) == said
    assert bool(differences(sweep(), replace(sweep(), limits=replace(LIMITS, trimmed=0.1))))


def written(
    folder: Path, of: Sweep, true: float, number: int = 10, sources: Mapping[str, str] = MappingProxyType({})
) -> Path:
    """Folder of results of this version, with some other sources."""
    folder.mkdir()
    environment.save(replace(MACHINE, sources=HERE | dict(sources)), folder)
    files.write_plan(folder, files.SWEPT, of)
    for each in range(1, number + 1):
        files.append_block(folder, block(of, {SOCKETS: 100 * true, GRPC: 100.0}, each, 0.02))
    return folder


def test_the_command_prints_a_table(tmp_path: Path) -> None:
    """The table is text or Markdown: a line for each headline comparison, then an explanation of each column."""
    folders = [written(tmp_path / str(true), sweep(), true) for true in (0.25, 0.27, 0.3)]
    head, line, empty, summary, empty, *legend = agree(folders).splitlines()
    assert head.split()[:2] == ["comparison", "decided"]
    assert line.startswith("sockets ÷ gRPC  3 of 3   FASTER")
    assert line.endswith("none")
    markdown = agree(folders, markdown=True).splitlines()
    assert markdown[2].startswith("| sockets ÷ gRPC | 3 of 3 | FASTER | 0.251 to 0.301 (3 runs) |")
    assert {text.count(" | ") for text in (markdown[0], markdown[2])} == {7}
    assert empty == ""
    assert [text.split(":")[0].strip() for text in legend] == list(HEAD[1:])
    assert [text.split("**")[1] for text in markdown[4:-2]] == list(HEAD[1:])
    decided = "Every one of the 3 runs decided 1 of the 1 comparison."
    assert summary == markdown[-1] == f"{decided} None has contradictory runs."
    folders[2] = written(tmp_path / "other", sweep(), 4.0)
    assert f"{decided} 1 has contradictory runs." in agree(folders)


def test_the_command_names_the_versions(tmp_path: Path) -> None:
    """Runs of two versions are named, and get no joint numbers."""
    changed = {"stock_service/trading/*.py": "another", "experiments/services/sort.py": "another"}
    folders = [
        written(tmp_path / "one", sweep(), 0.25),
        written(tmp_path / "two", sweep(), 0.26),
        written(tmp_path / "three", sweep(), 0.27, sources=changed),
    ]
    said = "Runs 1 and 3 have different sources in 1 comparison: stock_service/trading."
    assert agree(folders).splitlines()[3] == said
    assert "of several versions" in agree(folders)
    assert agree(folders).splitlines()[4].endswith("1 has runs of several versions, so their runs are not compared.")
    assert "| FASTER | of several versions |  |  |  |  |" in agree(folders, markdown=True)
    assert agree(folders, markdown=True).splitlines()[-2] == said
    assert "version" not in agree(folders[:2])


def earlier_runs(*versions: Sequence[float], variance: float = 1e-8, minutes: int = 4) -> list[EarlierRun]:
    """Earlier runs with these log-ratios, a sequence for each version. A run begins this number of minutes after the
    last."""
    began = datetime(2026, 1, 1, tzinfo=UTC)
    runs = [(version, place, log) for version, logs in enumerate(versions) for place, log in enumerate(logs)]
    times = [began + timedelta(days=version, minutes=place * minutes) for version, place, _ in runs]
    return [
        EarlierRun(at.isoformat(), str(version), "EPYC", 2, {"sockets ÷ gRPC": Ratio(log, variance)})
        for at, (version, _, log) in zip(times, runs, strict=True)
    ]


DIFFERING = earlier_runs((0.0, 0.02, 0.04), (1.0, 1.02, 1.04))
"""Earlier runs that differ by 2 %."""


def after(runs: Sequence[EarlierRun], true: float = 0.5) -> Judged:
    """Judgement of a run with this true ratio, after these earlier runs."""
    return with_deviation(run(true, noise=0.004), runs).judged["sockets ÷ gRPC"]


def test_the_deviation_between_runs_is_that_within_versions() -> None:
    """Only runs of one version give a deviation. A single run of a version does not count, and two pairs are too
    few."""
    found = known(deviation([*DIFFERING, *earlier_runs((), (), (5.0,))], "sockets ÷ gRPC"))
    assert (found.freedom, found.runs) == (4, 6)
    assert found.tau == pytest.approx(0.02, rel=1e-3)
    assert found.reach == pytest.approx(2.776445 * math.sqrt(2) * 0.02, rel=1e-3)  # Student's t, 4 degrees of freedom
    assert deviation(earlier_runs((0.0, 0.02), (1.0, 1.02)), "sockets ÷ gRPC") is None
    alike = known(deviation(earlier_runs((0.0, 0.02, 0.04, 0.03), variance=0.01), "sockets ÷ gRPC"))
    assert alike.tau == 0


@pytest.mark.parametrize(("true", "survives"), [(0.9, True), (0.96, False), (1.0, False), (2.0, True)])
def test_a_verdict_survives_the_deviation_or_not(true: float, survives: bool) -> None:
    """Earlier runs differ by 2 %: a ratio within 8 % of 1 does not survive a further run."""
    one = after(DIFFERING, true)
    assert one.decided
    assert one.survives == survives
    assert ("enough to undo the verdict" in ratio_sentence(one, "sockets", "gRPC")) != survives
    runs = "6 earlier runs on such a machine, minutes apart, show"
    said = f"In a run some minutes later, the ratio may differ by 8.2 %, as {runs}."
    assert said in listed(one)
    assert after((), true).survives


@pytest.mark.parametrize(("minutes", "is_hour"), [(29, False), (30, True)])
def test_runs_tell_of_another_hour_where_each_version_spans_one(minutes: int, is_hour: bool) -> None:
    """The words are "another hour" only if the earlier runs of every version span an hour."""
    runs = earlier_runs((0.0, 0.02, 0.04), (1.0, 1.02, 1.04), minutes=minutes)
    hour = "In another hour, the ratio may differ by 8.2 %, as 6 earlier runs on such a machine show."
    assert (hour in listed(after(runs))) is is_hour
    within = [replace(each, version="a short one") for each in earlier_runs((0.0, 0.02))]
    assert "In a run some minutes later, the ratio may differ by" in listed(after([*runs, *within]))


def test_the_answers_reach_is_of_the_ratios_that_they_show() -> None:
    """Only ratios in an answer count. A second sentence is for ratios without earlier runs."""
    unseen = after(earlier_runs((0.0, 0.05, 0.1), (1.0, 1.05, 1.1)))
    seen, unknown = after(DIFFERING, 0.3), after((), 0.7)
    every, answers = (unseen, seen, unknown), ratio_sentence(seen, "sockets", "gRPC")
    said = "In a run some minutes later, 1 of these ratios may differ by up to 8.2 %, as 6 earlier runs show."
    assert reach_of_all(answers, every) == said
    both = f"{answers} {ratio_sentence(unknown, 'sockets', 'gRPC')}"
    assert reach_of_all(both, every) == f"{said} For the other ratios no difference is known."
    assert reach_of_all(ratio_sentence(unknown, "sockets", "gRPC"), every) == ""


def test_runs_that_show_no_deviation_leave_one_open() -> None:
    """Four equal runs, each within 10 %, have an upper limit: the squares add up to 0.352, chi-squared of 3 at 5 %."""
    one = after(earlier_runs((0.0, 0.1, 0.1, 0.0), variance=0.0101))
    assert known(one.between).tau == 0
    assert known(one.between).tau_high ** 2 == pytest.approx(0.01 / 0.351846 - 0.0101, rel=1e-4)
    said = "4 earlier runs on such a machine, minutes apart, show no difference between runs; up to 14.5 % is possible."
    assert said in listed(one)


def test_runs_are_kept_for_the_next_ones(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The command writes each run's ratios, and prints no table."""
    folders = [written(tmp_path / str(true), sweep(), true) for true in (0.25, 0.27)]
    now = environment.look()
    for place, folder in enumerate(folders):
        began = replace(now, before=replace(now.before, at=f"2026-01-0{place + 1}"))
        environment.save(began, folder)
    file = tmp_path / "kept.json"
    assert main(["agree", *map(str, folders), "--keep", str(file)]) == 0
    assert capsys.readouterr().out == f"{file}: 2 runs\n"
    assert [round(math.exp(each.ratios["sockets ÷ gRPC"].log), 2) for each in load(file)] == [0.25, 0.27]


def test_two_runs_make_no_range(tmp_path: Path) -> None:
    """Two runs show both ratios and no deviation. Three equal runs show the upper limit of the deviation."""
    folders = [written(tmp_path / str(place), sweep(), true) for place, true in enumerate((0.27, 0.25, 0.26))]
    two = agree(folders[:2], markdown=True).splitlines()[2]
    assert "| 0.251 and 0.271 (2 runs) |" in two
    assert two.count("| 3 runs needed ") == 2
    alike = [written(tmp_path / f"alike {place}", sweep(), 0.25) for place in range(3)]
    assert "| none seen, up to " in agree(alike, markdown=True).splitlines()[2]


def test_runs_that_cannot_be_compared_are_refused_in_one_line(tmp_path: Path) -> None:
    """Runs of different sweeps, an unfinished run, and a single run are refused in one line."""
    whole = written(tmp_path / "whole", sweep(), 0.25)
    other = written(tmp_path / "other", sweep(rounds=7), 0.25)
    part = written(tmp_path / "part", sweep(), 0.25, 9)
    study = written(tmp_path / "study", replace(sweep(rounds=7), study="weather"), 0.25)
    for folders, said in (
        ([whole, other], "got 'rounds 15 and 7', allowed: a run of the same sweep as"),
        ([whole, study], "got 'study try and weather', allowed: a run of the same sweep as"),
        ([whole, part], "got '9 blocks, of a sweep with looks at 10, 14, 20', allowed: a whole run"),
        ([whole], "allowed: two folders of results or more"),
        ([], "RESULTS: missing"),
        ([whole, tmp_path], "a folder that holds results in other, part, study, whole"),
    ):
        with pytest.raises(UsageError) as refused:
            agree(folders)
        assert said in str(refused.value)
        assert "\n" not in str(refused.value)
