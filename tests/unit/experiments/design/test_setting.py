"""Settings and factors: texts, defaults, and refusals in one line."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.design.factors import FACTORS
from experiments.design.levels import YES_NO, Kind, Level
from experiments.design.setting import read, setting
from stock_service.rpc.errors import UsageError
from stock_service.rpc.transports import TRANSPORTS, load


def levels(kind: Kind) -> st.SearchStrategy[Level]:
    """Strategy for levels of a kind, from its description: ``a|b``, ``1..64``, ``0..1000|none``, ``yes|no``."""
    if kind is YES_NO:
        return st.booleans()
    named, drawn = kind.levels.split("|"), list[st.SearchStrategy[Level]]()
    for each in named:
        low, is_range, high = each.partition("..")
        if not is_range:
            drawn.append(st.just(None if each == "none" else each))
        else:
            whole = kind.allowed.startswith("a whole number")
            drawn.append(st.integers(int(low), int(high)) if whole else st.floats(float(low), float(high)))
    return st.one_of(drawn)


WORDS: dict[str, st.SearchStrategy[Level]] = {
    "service": st.sampled_from(("stock", "echo", "./server --port 0", "python -c 'print(\"ready h:1\")'", "a=b  c")),
    "mix": st.sampled_from(("lookup", "trade", "lookup=0.5,trade=0.5", "echo")),
}
"""Strategies for factors whose levels are free texts."""

LEVELS = {name: WORDS[name] if name in WORDS else levels(factor.kind) for name, factor in FACTORS.items()}


@given(st.fixed_dictionaries({}, optional=LEVELS))
def test_a_setting_reads_back_from_its_text(levels: dict[str, Level]) -> None:
    """Reading the text of a setting gives equal levels of equal types."""
    made = setting(**levels)
    again = read(str(made))
    assert again == made
    assert [type(level) for _, level in again.levels] == [type(level) for _, level in made.levels]


def test_executor_and_dispatch_are_the_transports_own_unless_said() -> None:
    """A change of the transport changes executor and dispatch, unless these were set."""
    for transport in TRANSPORTS:
        assert setting(transport=transport)["executor"] == load(transport).DEFAULT_EXECUTOR
    assert read("sockets").but(transport="grpc") == read("grpc")
    assert read("sockets").but(transport="grpc_aio")["dispatch"] == "loop"
    said = read("sockets executor=thread-per-task").but(transport="grpc")
    assert said["executor"] == "thread-per-task"


def test_a_text_says_the_transport_and_what_is_not_at_its_default() -> None:
    """The text of a setting has the transport and the levels off their defaults, in the order of ``FACTORS``."""
    assert str(read("clients=5 workers=4 transport=grpc locking=mutex")) == "grpc workers=4 clients=5"
    assert str(read("")) == "sockets"
    assert str(setting(service="./server --port 0")) == "sockets service='./server --port 0'"


def test_a_level_that_equals_the_default_is_the_default() -> None:
    """A level of another type that equals the default becomes the default. Else the setting would have another text."""
    assert setting(updater=0, cpu_ms=0, clients=True) == setting()
    assert str(setting(updater=0)) == "sockets"
    assert setting(updater=0)["updater"] is False


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("carrier-pigeon", "transport: got 'carrier-pigeon', allowed: "),
        ("grpc sockets", "a setting: got 'sockets', allowed: a transport, then FACTOR=LEVEL"),
        ("grpc colour=red", "a setting: got 'colour=red'"),
        ("grpc worker=3", "a setting: got 'worker=3', allowed: a transport, then FACTOR=LEVEL (did you mean workers?)"),
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
    """Invalid words are refused in one line with the given and the allowed values."""
    with pytest.raises(UsageError) as refused:
        read(text)
    assert str(refused.value).startswith(said)
    assert "\n" not in str(refused.value)


def test_a_factor_that_there_is_not_is_refused() -> None:
    """An unknown factor is refused with its name and all known factors."""
    with pytest.raises(UsageError, match="got 'colour', allowed: these factors: service, language, transport"):
        setting(colour="red")


def test_what_is_not_said_is_as_in_the_base() -> None:
    """A factor without a word has its level in the base. A word overrides the base."""
    assert read("workers=3", {"clients": 5, "workers": 4}) == setting(clients=5, workers=3)


def test_two_settings_are_unlike_in_the_factors_whose_levels_differ() -> None:
    """The factors are in the order of ``FACTORS``, from both sides. Equal settings are unlike in none."""
    one = read("sockets workers=4 clients=5")
    other = one.but(clients=2, workers=3)
    differ = tuple(name for name in FACTORS if name in ("clients", "workers"))
    assert one.unlike(other) == other.unlike(one) == differ
    assert one.unlike(read("sockets clients=5 workers=4")) == ()
