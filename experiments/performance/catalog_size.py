"""Whether a large catalog is looked up as fast as a small one: 100,000 stocks beside 4, drawn at random.

The load is our lean client: programs in C ask for one stock again and again, which no cache forgets. All stocks have
one price, so that every reply has the same bytes, and the client has the same to do for both.
"""

import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from clients.load.record.result import ALL
from clients.load.run import fleet
from experiments.design.arms import Arm
from experiments.design.setting import setting
from experiments.measure.bench import Bench, server_command
from experiments.measure.block import load_plan
from experiments.measure.programs import Program
from experiments.performance.by_turns import Derived, by_turns, throughputs
from experiments.performance.turns import Turn
from stock_service.rpc.errors import Unavailable
from stock_service.rpc.transports import Address

FEW, MANY = 4, 100_000

WARM_UP_S, WINDOW_S = 0.1, 0.5

OF = Arm(setting(transport="sockets", client="lean", connections=16))


def stocks(number: int) -> str:
    """The name of a window."""
    return f"{number:,} stocks"


def _processor_times(many: Turn, few: Turn) -> float:
    return few.cpu_us / many.cpu_us


_ARMS = (stocks(MANY), stocks(FEW))

ROWS = (
    Derived(f"{MANY:,} stocks ÷ {FEW}", "throughput", 0.95, True, _ARMS, throughputs),
    Derived(f"{FEW} stocks ÷ {MANY:,}", "CPU a request", 0.95, True, _ARMS, _processor_times),
)


@dataclass(frozen=True, slots=True)
class Served:
    """A server that is ready, and the stocks that it has."""

    program: Program
    address: Address
    names: tuple[str, ...]

    def window(self, on: Bench, number: int) -> Turn:
        """Lookups of these stocks, for a window. Blocks. Raises Unavailable where nothing is answered."""
        plan = replace(load_plan(OF, self.address, on, self.names, number), warm_up_s=WARM_UP_S, duration_s=WINDOW_S)
        before_s = self.program.cpu_s()
        result = fleet.run(plan)
        if result.interrupted:
            raise KeyboardInterrupt
        seen = result.requests[ALL]
        if seen.p50_us is None or seen.p99_us is None or seen.p999_us is None:
            raise Unavailable("no Lookup was answered")
        cpu_us = (self.program.cpu_s() - before_s) / result.recorded * 1e6
        times_us = seen.p50_us, seen.p99_us, seen.p999_us
        share, errors = result.client_cpu_s / plan.duration_s, sum(seen.errors.values())
        return Turn(stocks(len(self.names)), 1, number, seen.throughput_hz, cpu_us, *times_us, share, errors)


def measure(on: Bench, turns: int, watch: Callable[[float], None]) -> list[Turn]:
    """Every turn: some 2 s each. Blocks. Raises ProgramFailed, Unavailable."""
    with _serving(on) as served:
        return by_turns({name: partial(each.window, on) for name, each in served.items()}, turns, watch)


@contextmanager
def _serving(on: Bench) -> Iterator[Mapping[str, Served]]:
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        served = {}
        for number in (FEW, MANY):
            names = tuple(f"Stock {place}" for place in range(number))
            file = scratch / f"{number}.toml"
            file.write_text("".join(f'[[stocks]]\nname = "{name}"\nprice = 1\nvolume_limit = 1\n' for name in names))
            program = stack.enter_context(Program(server_command(OF.server, file), on.server_cores))
            served[stocks(number)] = Served(program, program.ready(), names)
        yield served
