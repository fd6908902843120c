"""Settings and factors: their text, their defaults, and refusals in one line."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.design.factors import FACTORS, PROCESSES_MAX, PROTOCOLS
from experiments.design.levels import Level
from experiments.design.setting import Setting, read, setting
from experiments.peers import LANGUAGES
from stock_service.rpc.errors import UsageError
from stock_service.rpc.transports import TRANSPORTS, load

LEVELS: dict[str, st.SearchStrategy[Level]] = {
    "service": st.sampled_from(("stock", "echo", "./server --port 0", "python -c 'print(\"ready h:1\")'", "a=b  c")),
    "language": st.sampled_from(LANGUAGES),
    "call_style": st.sampled_from(["sync", "async"]),
    "in_flight": st.integers(1, 1024),
    "build": st.sampled_from(("release", "debug", "free-threaded")),
    "transport": st.sampled_from(PROTOCOLS),
    "executor": st.sampled_from(("static-pool", "thread-pool")),
    "workers": st.integers(1, 1024),
    "processes": st.integers(1, PROCESSES_MAX),
    "dispatch": st.sampled_from(("request", "connection", "loop")),
    "pattern": st.sampled_from(("request-reply", "pair", "one-way")),
    "store": st.sampled_from(("memory", "sqlite")),
    "access": st.sampled_from(("open", "token", "tls")),
    "metrics": st.booleans(),
    "locking": st.sampled_from(("mutex", "per-stock")),
    "placement": st.sampled_from(("apart", "free")),
    "io_ms": st.floats(0, 1000),
    "cpu_ms": st.floats(0, 1000),
    "hash_ms": st.floats(0, 1000),
    "clients": st.integers(1, 64),
    "connections": st.integers(1, 64),
    "connection": st.sampled_from(("kept-alive", "per-request")),
    "mix": st.sampled_from(("lookup", "trade", "lookup=0.5,trade=0.5", "echo")),
    "array_len": st.integers(0, 100_000),
    "choice": st.sampled_from(("uniform", "zipf")),
    "size": st.none() | st.integers(8, 1_000_000),
    "updater": st.booleans(),
    "client": st.sampled_from(("library", "lean", "c", "h2load", "grpc-go", "peer")),
    "headers": st.sampled_from(("same", "deadline", "100B")),
    "deadline_ms": st.none() | st.floats(1, 60_000),
    "rate_hz": st.none() | st.floats(0.1, 1e6),
    "arrivals": st.sampled_from(("constant", "poisson")),
}


def test_every_factor_has_levels_to_try() -> None:
    """The strategies below leave none out."""
    assert set(LEVELS) == set(FACTORS)


@given(st.fixed_dictionaries({}, optional=LEVELS))
def test_a_setting_reads_back_from_its_text(levels: dict[str, Level]) -> None:
    """Every setting reads back from its text with the same levels, of the same types."""
    made = setting(**levels)
    again = read(str(made))
    assert again == made
    assert [type(level) for _, level in again.levels] == [type(level) for _, level in made.levels]


def test_executor_and_dispatch_are_the_transports_own_unless_said() -> None:
    """Executor and dispatch follow a later change of the transport, unless they were set."""
    for transport in TRANSPORTS:
        assert setting(transport=transport)["executor"] == load(transport).DEFAULT_EXECUTOR
    assert read("sockets").but(transport="grpc") == read("grpc")
    assert read("sockets").but(transport="grpc_aio")["dispatch"] == "loop"
    said = read("sockets executor=thread-per-task").but(transport="grpc")
    assert said["executor"] == "thread-per-task"


def test_a_text_says_the_transport_and_what_is_not_at_its_default() -> None:
    """A text has the transport and the levels off their defaults, in the table's order."""
    assert str(read("clients=5 workers=4 transport=grpc locking=mutex")) == "grpc workers=4 clients=5"
    assert str(read("")) == "sockets"
    assert str(setting(service="./server --port 0")) == "sockets service='./server --port 0'"


def test_a_level_that_equals_the_default_is_the_default() -> None:
    """An equal one of another type would have another text."""
    assert setting(updater=0, cpu_ms=0, clients=True) == setting()
    assert str(setting(updater=0)) == "sockets"
    assert setting(updater=0)["updater"] is False


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("carrier-pigeon", "transport: got 'carrier-pigeon', allowed: "),
        ("grpc sockets", "a setting: got 'sockets', allowed: a transport, then FACTOR=LEVEL"),
        ("grpc colour=red", "a setting: got 'colour=red'"),
        (
            "grpc worker=3",
            "a setting: got 'worker=3', allowed: a transport, then FACTOR=LEVEL (did you mean workers?); a factor is ",
        ),
        ("grpc workers", "workers: got '', allowed: a whole number from 1 to 1024"),
        ("grpc workers=0", "workers: got '0', allowed: a whole number"),
        ("grpc workers=many", "workers: got 'many'"),
        ("grpc updater=maybe", "updater: got 'maybe', allowed: yes, no"),
        ("grpc rate_hz=nan", "rate_hz: got 'nan', allowed: a number from 0.1 to 1e+06, or none"),
        ("grpc mix=lookup,lookup", "mix: got 'lookup,lookup'"),
        ("grpc mix=lookup=often", "mix: got 'lookup=often'"),
        ("grpc clients=5\nworkers=7x", "workers: got '7x'"),
        ("grpc service='a b", 'a setting: got "grpc service=\'a b", allowed: words quoted as in a shell'),
    ],
)
def test_bad_words_are_refused_in_one_line(text: str, said: str) -> None:
    """Bad words are refused in one line with the given and the allowed values."""
    with pytest.raises(UsageError) as refused:
        read(text)
    assert str(refused.value).startswith(said)
    assert "\n" not in str(refused.value)


def test_a_factor_that_there_is_not_is_refused() -> None:
    """An unknown factor is refused by its name, beside all known factors."""
    with pytest.raises(UsageError, match="got 'colour', allowed: these factors: service, language, transport"):
        setting(colour="red")


def test_what_is_not_said_is_as_in_the_base() -> None:
    """Words win over it."""
    assert read("workers=3", {"clients": 5, "workers": 4}) == setting(clients=5, workers=3)


def test_server_and_load_share_the_factors_out() -> None:
    """Each is of one of them."""
    one = read("grpc clients=5 workers=4")
    assert sorted((*one.of("server"), *one.of("load"))) == sorted(one.levels)
    assert dict(one.of("server"))["workers"] == 4
    assert isinstance(one, Setting)
