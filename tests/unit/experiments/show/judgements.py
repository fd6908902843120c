"""A small sweep with every kind of comparison, judged from blocks with known means; and a part that shows it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from experiments.design.arms import Arm, Comparison, Group, twins
from experiments.design.setting import setting
from experiments.design.sweep import Slices, Sweep
from experiments.judge.points import points
from experiments.judge.verdicts import Judgement, judge
from experiments.show.content import Answer, Claim, Section, Seen
from experiments.show.figures import clients, ratios
from experiments.show.figures.style import Picture
from experiments.show.sentences import ratio_sentence
from tests.unit.experiments.blocks import World, blocks

BOTH = "lookup=0.5,trade=0.5"

GRPC, SOCKETS = (
    {
        clients: Arm(setting(transport=transport, executor="static-pool", mix=BOTH, clients=clients))
        for clients in (1, 5)
    }
    for transport in ("grpc", "sockets")
)
READ_WRITE = Arm(setting(transport="sockets", executor="static-pool", mix=BOTH, locking="read-write", clients=5))
SAME, FIRST, AGAIN = twins(SOCKETS[1].setting, "same")

MEANS_US = {("grpc", 1): 300.0, ("grpc", 5): 900.0, ("sockets", 1): 90.0, ("sockets", 5): 450.0}


def sweep(looks: tuple[int, ...] = (10, 14)) -> Sweep:
    """Sweep of two transports, one client and five, a locking strategy, and an A/A pair."""
    comparisons = (
        Comparison(
            "transport",
            "Lookup, 1 client: sockets ÷ gRPC",
            SOCKETS[1],
            GRPC[1],
            ("transport",),
            request="lookup",
            family="headline",
        ),
        _growth("grpc", GRPC),
        _growth("sockets", SOCKETS),
        Comparison(
            "per client",
            "On sockets, for each client: 5 ÷ 1",
            SOCKETS[5],
            SOCKETS[1],
            ("clients",),
            "per client",
        ),
        Comparison("locking", "Lookup, 5 clients: read-write ÷ mutex", READ_WRITE, SOCKETS[5], ("locking",)),
        Comparison("cpu", "Processor time: sockets ÷ gRPC", SOCKETS[1], GRPC[1], ("transport",), measure="cpu"),
        SAME,
    )
    groups = (Group((SOCKETS[1], GRPC[1], SOCKETS[5], GRPC[5], READ_WRITE)), Group((FIRST, AGAIN)))
    return Sweep("study", "part", groups, comparisons, 12, looks, turns=Slices())


def _growth(transport: str, arms: Mapping[int, Arm]) -> Comparison:
    title = f"Lookup on {transport}: 5 clients ÷ 1"
    return Comparison(
        f"growth {transport}", title, arms[5], arms[1], ("clients",), "growth", request="lookup", family="headline"
    )


def mean_us(arm: Arm, request: str) -> float:
    """The true mean: a read-write lock changes nothing."""
    times = 1.02 if request == "trade" else 1.0
    return MEANS_US[arm.setting.text("transport"), arm.connections] * times


USUAL = World(mean_us)


@cache
def judged(number: int = 10, world: World = USUAL, looks: tuple[int, ...] = (10, 14)) -> Judgement:
    """Judgement of this number of blocks of the world."""
    whole = sweep(looks)
    return judge(whole, blocks(whole, number, world))


@dataclass(frozen=True, slots=True)
class FakePart:
    """A part of a study: one question, one claim, a section, and figures."""

    title: str = "Two transports and a lock"
    peers: tuple[str, ...] = ()
    first: str | None = None
    also: tuple[str, ...] = ("beside",)
    after: tuple[str, ...] = ("later",)

    def pictures(self, seen: Seen) -> Sequence[Picture]:
        """The question's figure, and a figure that no text names."""
        found = points(seen.main.sweep, seen.main.blocks)
        lines = [
            clients.Line(label, transport, [found[arm, "lookup"] for arm in arms.values() if (arm, "lookup") in found])
            for label, transport, arms in (("gRPC", "grpc", GRPC), ("sockets", "sockets", SOCKETS))
        ]
        panels = [clients.Panel("Lookup", lines, pool=3)]
        return (
            ratios.picture("answers", "Sockets against gRPC", list(seen.main.comparisons("headline"))),
            clients.picture("latency", "Latency as clients grow", panels, percentiles=True),
        )

    def answers(self, seen: Seen) -> Sequence[Answer]:
        """The part's answer, from its judgement."""
        deciding = tuple(seen.main.comparisons("headline"))
        sentence = ratio_sentence(deciding[0], "sockets", "gRPC") if deciding else "Nothing was measured."
        further = tuple(seen.main.comparisons("further"))
        details = ("A detail with a number: 3.",)
        return (
            Answer(
                "Do sockets answer sooner than gRPC?",
                sentence,
                deciding,
                further,
                details,
                "mean latency of Lookup on sockets ÷ on gRPC, with <one> client.",
                ("That the lock makes the difference.",),
                "answers",
                "This would decide it: `python -m experiments run part --blocks 20`",
            ),
        )

    def claims(self, _: Seen) -> Sequence[Claim]:
        """A claim that is confirmed and one that cannot be tested."""
        return (
            Claim("Sockets take less time: 12.38 ms against 17.92 ms.", "CONFIRMED", "0.302, 0.299 to 0.305."),
            Claim("Lookup takes 17.92 ms on gRPC.", "NOT TESTABLE", "Another machine."),
        )

    def sections(self, _: Seen) -> Sequence[Section]:
        """A section with a table, and a figure."""
        return (Section("More clients", "Text with `code`.\n\n| A | B |\n| - | -: |\n| 1 | 2 |", ("latency",)),)
