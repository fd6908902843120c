"""The numbers of the original, each with its unit and its place in the document. Context: another machine.

It timed ``SayHello`` of gRPC's C++ example with ``std::chrono::high_resolution_clock``, in containers on its author's
machine. It has no table and no figure: what is drawn beside ours are the numbers of its text and its terminal.
"""

LATENCY_MS = (1.0, 2.0)
"""Question 1: the round trip of one call of one client, at least and at most."""

ONE_CLIENT_HZ = 3600.0
"""Question 2: "about", with one client."""

TWO_CLIENTS_HZ = 3300.0
"""Question 2: "about", with two clients. It is what one of the two printed."""

TERMINAL_HZ = 3297.24
"""The terminal of question 2, one client's last line: 1000 calls ÷ the time of its loop."""

CALLS = 1000
"""Question 3: calls of a client in the loop that was timed."""

CLIENTS = (1, 2)
"""Question 2: clients at once, each a program in its own terminal."""


def implied_ms() -> float:
    """The time of a call that the throughput with one client stands for: one call at a time takes 1 ÷ rate."""
    return 1000 / ONE_CLIENT_HZ
