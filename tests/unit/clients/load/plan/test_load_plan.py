"""The limits of a load plan."""

import dataclasses

import pytest

from clients.load.plan.load_plan import CLIENTS_MAX, CONNECTIONS_MAX, Check, LoadPlan
from stock_service.rpc.errors import UsageError

PLAN = LoadPlan("sockets", ("127.0.0.1", 1), 1, {"lookup": 1.0}, ("GameStart",), 0.0, 1.0)


@pytest.mark.parametrize(
    ("change", "option"),
    [
        ({"transport": "pigeon"}, "--transport"),
        ({"clients": CLIENTS_MAX + 1}, "--clients"),
        ({"connections_per_client": 0}, "--connections-per-client"),
        ({"clients": 2, "connections_per_client": CONNECTIONS_MAX}, "--connections-per-client"),
        ({"connection": "sometimes"}, "--connection"),
        ({"warm_up_s": float("nan")}, "--warm-up-s"),
        ({"duration_s": 3601.0}, "--duration-s"),
        ({"timeout_s": 61.0}, "--timeout-s"),
        ({"quantity": 0}, "--quantity"),
        ({"stocks": ()}, "--stocks"),
        ({"mix": {}}, "--mix"),
        ({"mix": {"echo": 1.0}}, "--mix"),
        ({"mix": {"lookup": float("inf")}}, "--mix"),
        ({"mix": {"lookup": 1e-7}}, "--mix"),
        ({"client": "fastest"}, "--client"),
        ({"rate_hz": 1e7}, "--rate-hz"),
        ({"arrivals": "bursts"}, "--arrivals"),
        ({"choice": "pareto"}, "--choice"),
        ({"zipf_s": 11.0}, "--zipf-s"),
        ({"check": Check("run"), "rate_hz": 10.0}, "--check"),  # an open loop draws a request long before the send
    ],
)
def test_a_plan_outside_the_limits_is_refused(change: dict[str, object], option: str) -> None:
    """A plan outside the limits cannot be made. The error names the option of the command line."""
    with pytest.raises(UsageError) as refused:
        dataclasses.replace(PLAN, **change)  # type: ignore[arg-type]
    assert refused.value.option == option


@pytest.mark.parametrize("connections", [1, 16, 512, CONNECTIONS_MAX])
def test_memory_for_records_is_bounded(connections: int) -> None:
    """All connections together hold at most 2^23 records up to 512 connections, and 2^26 above."""
    plan = dataclasses.replace(PLAN, connections_per_client=connections)
    assert plan.records_max * plan.connections <= (2**23 if connections <= 512 else 2**26)
