"""An advice by measurement: what is asked of a server beside the loads that an advice is made of."""

import pytest

from experiments.capacity import Demands
from experiments.recommend import measured
from experiments.recommend.advice import Wish
from experiments.recommend.asking import Asked, Server
from experiments.recommend.measured import TAIL_HZ_MOST
from experiments.recommend.seen import Inferred, Load
from experiments.recommend.words import Seen


@pytest.mark.parametrize(
    ("highest_hz", "wished_hz", "asked_hz"),
    [(60_000, None, TAIL_HZ_MOST), (60_000, 25_000, TAIL_HZ_MOST), (10_000, None, 7_000), (10_000, 500, 500)],
)
def test_a_tail_is_asked_for_at_a_rate_that_our_client_keeps(
    monkeypatch: pytest.MonkeyPatch, highest_hz: float, wished_hz: float | None, asked_hz: float
) -> None:
    """Seven tenths of what the server does, the wished rate if that is less, and what one client process sends."""
    rates_hz = []

    def loaded(_: Asked, __: Server, connections: int, ___: float, rate_hz: float) -> Load:
        rates_hz.append(rate_hz)
        return Load(connections, rate_hz, 0.001, 0.0, 0.002, None, 0.5)

    monkeypatch.setattr(measured, "loaded", loaded)
    inferred = Inferred(Demands(0.0, 0.00001, 0.0, 0.0), highest_hz, None, 0.0, 1.0, client_limited=False)
    asked, seen = Asked("sockets", ("127.0.0.1", 1), None, ()), Seen((), inferred)
    found = measured._with_tail(asked, 64, 1, highest_hz, Wish(2, wished_hz), seen, lambda _: None)
    assert rates_hz == pytest.approx([asked_hz])
    assert found.tail_rate_hz == pytest.approx(asked_hz)
