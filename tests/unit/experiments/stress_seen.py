"""A small stress test, and what could be seen of it."""

from experiments.design.setting import setting
from experiments.kinds.block import Block
from experiments.kinds.stress import FinalSeen, FinalState, KindSeen, StressKind, StressPlan, StressSeen
from tests.unit.experiments.apart_seen import block_of

SERVER = setting(service="entity", transport="http1", mix="get")

ENTITY = '{"id":{id},"description":"entity {id}","value":0.5}'
UPDATE = '{"id":{id},"description":"update {turn} of {id}","value":{turn}.5}'
AT = "/entities/{id}"

PLAN = StressPlan(
    "study",
    "part",
    (SERVER,),
    (StressKind("known", f"PUT {AT}", 2000, 20, body=ENTITY),),
    (
        StressKind("new", f"PUT {AT}", 3000, 20, body=ENTITY, expect='{"created":true}'),
        StressKind("update", f"PUT {AT}", 2000, 20, 2, UPDATE, '{"created":false}'),
    ),
    (FinalState("new", f"GET {AT}", 3000, 20, ENTITY), FinalState("updated", f"GET {AT}", 2000, 20, UPDATE, 2)),
    connections=5,
    blocks=2,
)


def repetition(number: int, errors: int = 0, wrong: int = 0) -> Block[StressSeen]:
    """A repetition of two seconds: its first kind took half of them, its second kind all."""
    new = KindSeen(20, 0, 0, 1_000_000_000, 2048, 4096)
    update = KindSeen(40 - errors, errors, 0, 2_000_000_000, 4096, 8192)
    final = FinalSeen(20, 0), FinalSeen(20 - wrong, wrong)
    return block_of(number, (StressSeen((new, update), final),))
