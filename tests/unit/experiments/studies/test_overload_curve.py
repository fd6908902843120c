"""The part ``overload_curve``: calls answered in time, as multiples of each server's peak."""

from collections.abc import Mapping

from experiments.design.arms import Arm
from experiments.judge.verdicts import judge
from experiments.results.observed import Window
from experiments.show.content import Seen
from experiments.studies.server_cost import SERVER_COST, overload_curve
from experiments.studies.study import Scale
from tests.unit.experiments.blocks import World, blocks

SMALL = Scale(rounds=4, looks=(10, 14), clients=(1,))


def overloaded(keeps: Mapping[str, float]) -> Seen:
    """Blocks of servers with a peak of 1,000 a second. Each keeps a share beyond it, by its transport."""
    sweep = overload_curve.sweep(SMALL)

    def answered(arm: Arm) -> tuple[Window, ...]:
        rate_hz = arm.setting["rate_hz"]
        if not isinstance(rate_hz, float):
            return (Window(None, 1000.0, 1000.0, 0, 0, None, 0.6),)
        late_us = 10_000.0 if rate_hz > 10_000 else 100.0
        good_hz = rate_hz if rate_hz < 1000 else 1000 * keeps[arm.setting.text("transport")]
        return (Window(rate_hz, rate_hz, good_hz, 0, 0, late_us, 0.6),)

    return Seen(judge(sweep, blocks(sweep, 10, World(lambda *_: 500.0, windows=answered))))


def test_overload_is_told_drawn_and_tabled_in_peaks() -> None:
    """Sent calls and calls answered in time are multiples of each server's peak. A late load is marked."""
    part, seen = SERVER_COST.parts["overload_curve"], overloaded({"sockets": 0.9, "grpc_static": 0.8, "grpc": 0.0})
    (answer,), (section,), (picture,) = part.answers(seen), part.sections(seen), part.pictures(seen)
    assert answer.sentence.startswith("Each server is offered 1.4, 2, 5 and 10 times its capacity. Of its peak, ")
    assert "Of its peak, sockets answers 90 %, 90 %, 90 % and 90 % in time." in answer.sentence
    assert answer.sentence.endswith("Of its peak, grpcio answers 0 %, 0 %, 0 % and 0 % in time.")
    assert answer.details[0] == "The peak of sockets is 1,000 calls a second."
    assert answer.details[3] == "On sockets the load was sent late at 10 times the capacity."
    assert len(answer.details) == 3 + 3
    assert "| 0.5 | 0.850 | 0.850 (0.850 to 0.850) | 0.775 | 0.775" in section.text
    assert "| 14.0 | 0 (0 to 0) † |" in section.text
    assert section.text.count("†") == 3 + 1
    assert "3.4: 0.900 (0.900 to 0.900)" in picture.alternative
    assert part.answers(Seen(judge(seen.main.sweep, [])))[0].sentence == "Not measured."
    assert part.sections(Seen(judge(seen.main.sweep, [])))[0].text.count("| – | – |")
