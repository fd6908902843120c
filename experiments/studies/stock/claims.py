"""The replication card: every claim of the document, with the verdict of our data.

Verdicts on ratios make a claim CONFIRMED or CONTRADICTED, in a sweep that is at a look (a declared number of blocks).
Claims on starved clients (clients without a reply) need such a sweep too. A claim that latency rises is judged at every
step from one number of clients to the next, by mean latencies of the same blocks. The part on lock waits has no look.
For this part the interval of the difference of two waits is compared with 5 % of the latency.

A claim is NOT TESTABLE where no measurement here decides the claim, and NOT MEASURED where the results of the claim's
part are absent. The document's milliseconds are context: they are of another machine and another program.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from experiments.design.arms import Arm
from experiments.design.sweep import BLOCKS_MIN
from experiments.judge.points import CONFIDENCE
from experiments.judge.stats import mean_interval, ratio_interval, sign_flip_p
from experiments.judge.steps import Step, mean_log_ratios, steps
from experiments.judge.verdicts import Judged, Judgement, Verdict
from experiments.show.content import Claim, ClaimVerdict, Entry, Finding, Seen, not_measured
from experiments.show.numbers import INTERVAL_BLOCKS_MIN, number, ratio_with_ends
from experiments.show.sentences import listed, state_sentences
from experiments.studies.stock.locks import REQUESTS, mutex_wait
from experiments.studies.stock.sweeps import FIGURES, GRPC, POOL, SOCKETS, clients_of
from experiments.studies.stock.wording import brief, by_clients, contrary, counted_windows, found, mean_us, step_by_step

Parts = Mapping[str, Judgement]
"""Judgements of parts, by the parts' names."""

GRPC_MS, SOCKETS_MS = 17.92, 12.38
"""Mean latency of Lookup with one client in the document, in ms, on gRPC and on sockets."""

RISING = {
    "figure_1": ("growth_figure_1", "Figure 1 (gRPC, Lookup and Trade at random, a price updater beside them)"),
    "figure_2": ("growth_grpc", "Figure 2 (gRPC, Lookup)"),
    "figure_3": ("growth_figure_3", "Figure 3 (gRPC, Trade)"),
    "figure_4": ("growth_sockets", "Figure 4 (sockets, Lookup)"),
    "figure_5": ("past_pool", f"Figure 5 (sockets, Lookup, a pool of {POOL})"),
}
"""Figures in which latency rises, as the document says. The key is the figure's name. An entry has the name of the
comparison that begins the finding's text, and the figure in words.
"""


def claims(seen: Seen) -> tuple[Claim, ...]:
    """Claims of a part, in the document's order. The main part has every claim. A further part has only the claims that
    its own data decide.
    """
    own = [entry for entry in ENTRIES if seen.main.sweep.part in ("stock", entry.part)]
    return tuple(_claim(entry, seen) for entry in own)


def _claim(entry: Entry[Parts], seen: Seen) -> Claim:
    parts = {**seen.beside, seen.main.sweep.part: seen.main, **seen.after}
    if entry.part not in parts:
        return not_measured(entry.text, entry.part)
    claim = entry.claim(parts)
    if parts[entry.part] is seen.beside.get(entry.part):
        return replace(claim, said=f"{claim.said} From the part `{entry.part}`, recorded beside it.")
    return claim


def _milliseconds(parts: Parts) -> Finding:
    means = [(name, mean_us(parts["stock"], Arm(base))) for name, base in (("gRPC", GRPC), ("sockets", SOCKETS))]
    ours = " and ".join(f"{number(mean / 1000)} ms on {name}" for name, mean in means if mean is not None)
    here = f" Here: {ours}." if ours else ""
    return "NOT TESTABLE", f"Another machine and another program: context only.{here}"


def _sockets_are_faster(parts: Parts) -> Finding:
    """Finding on the claim that sockets are faster, from sockets ÷ gRPC with both servers as started. The text also has
    the ratios that tell protocol and implementation apart."""
    judged = parts["stock"].judged.get("as_started")
    return _is_faster(judged), f"{brief(parts['stock'], 'as_started')}{_by_protocol(parts)}"


def _the_lock_is_why(parts: Parts) -> Finding:
    """Finding on the claim that the lock is the reason why sockets are faster. CONTRADICTED where sockets are also
    faster with the same lock on both sides, and the ratio's interval does not lie within 5 % of 1.
    """
    judged = parts["stock"].judged.get("equal_executors")
    text = f"With the same locking on both sides: {brief(parts['stock'], 'equal_executors')}{_by_protocol(parts)}"
    wait = mutex_wait(parts["lock_waits"], "lookup") if "lock_waits" in parts else None
    if wait is not None:
        text += f" On gRPC with {clients_of(wait.arm.connections)} a Lookup waits for the lock {wait.numbers}."
    stays = judged is not None and judged.verdict is Verdict.FASTER and not judged.by_less_than_5
    return ("CONTRADICTED" if stays else "INCONCLUSIVE"), text


def _by_protocol(parts: Parts) -> str:
    """Text on the measured comparisons that tell protocol and implementation apart."""
    return "".join(f" {listed(each)}" for each in found(parts["stock"], "protocol", "implementation"))


def _no_lock_needed(_: Parts) -> Finding:
    return "NOT TESTABLE", (
        "The claim is on correctness, not on latency. It is true while nothing writes, and here trades write."
    )


def _rises(figure: str, growth: str) -> Callable[[Parts], Finding]:
    """Function that judges the claim that latency rises in a figure. CONFIRMED where latency rises at every step from
    one number of clients to the next, CONTRADICTED where latency falls or stays the same at a step.

    ``figure``: name of the figure. ``growth``: name of the comparison with which the text begins.
    """

    def finding(parts: Parts) -> Finding:
        judgement = parts["stock"]
        arms = by_clients(judgement, FIGURES[figure])
        judged, own, ends = judgement.judged.get(growth), steps(judgement, arms), brief(judgement, growth)
        if judged is not None and judged.together:
            ends += " The claim is on the time that clients wait, so it can still be judged."
        missing = len(arms) - 1 - len(own)
        others = [each for each in own if each.verdict(judgement) is not Verdict.GROWS]
        words = f"{ends} {step_by_step(own)}{contrary(judgement, others, missing)}"
        return _rising(judgement, own, all_measured=not missing), words

    return finding


def _rising(judgement: Judgement, own: Sequence[Step], *, all_measured: bool) -> ClaimVerdict:
    """Verdict on a claim that latency rises, from the steps of the claim's figure. A step without a value leaves the
    claim INCONCLUSIVE, unless another step contradicts the claim."""
    directions = {each.verdict(judgement) for each in own}
    if directions & {Verdict.FLAT, Verdict.FALLS}:
        return "CONTRADICTED"
    return "CONFIRMED" if directions == {Verdict.GROWS} and all_measured else "INCONCLUSIVE"


def _constant_up_to_the_pool(parts: Parts) -> Finding:
    """Finding on the claim that latency stays constant up to the pool's size. The claim is on the dispatch model in
    which a connection holds its thread. CONFIRMED where latency stays the same from one client up to as many clients as
    threads.
    """
    text = brief(parts["dispatch"], "growth")
    judged = parts["dispatch"].judged.get("growth")
    if judged is None:
        return "INCONCLUSIVE", text
    if judged.verdict is Verdict.FLAT:
        return "CONFIRMED", text
    moves = judged.verdict in (Verdict.GROWS, Verdict.FALLS) and not judged.by_less_than_5
    return ("CONTRADICTED" if moves else "INCONCLUSIVE"), text


def _trade_is_like_lookup(parts: Parts) -> Finding:
    """Finding on the claim that a Trade takes as long as a Lookup, from the ratio Trade ÷ Lookup on gRPC. CONTRADICTED
    only where the ratio's whole interval is over 5 % away from 1.
    """
    text = brief(parts["stock"], "trade")
    for judged in found(parts["stock"], "trade"):
        low, high = judged.equivalent
        if judged.verdict is Verdict.EQUIVALENT or judged.by_less_than_5:
            return "CONFIRMED", text
        is_apart = judged.typical.high < low or judged.typical.low > high
        if judged.verdict in (Verdict.FASTER, Verdict.SLOWER) and is_apart:
            return "CONTRADICTED", text
    return "INCONCLUSIVE", text


def _lock_costs_both_the_same(parts: Parts) -> Finding:
    """Finding on the claim that the lock costs Lookup and Trade the same. The finding rests on the times that Lookups
    and Trades wait for the mutex. CONFIRMED where the interval over the blocks shows that the two times differ by under
    5 % of the latency.
    """
    lookup, trade = (mutex_wait(parts["lock_waits"], each) for each in REQUESTS)
    if lookup is None or trade is None:
        return "INCONCLUSIVE", "The server did not stamp lock waits of both request types."
    text = f"Under the mutex on gRPC a Lookup waits {lookup.numbers}. A Trade waits {trade.numbers}."
    apart = [trade.shares[block] - lookup.shares[block] for block in trade.shares if block in lookup.shares]
    if len(apart) < INTERVAL_BLOCKS_MIN:
        return "INCONCLUSIVE", f"{text} {len(apart)} blocks are too few for an interval."
    at, sweep = mean_interval(apart, CONFIDENCE), parts["lock_waits"].sweep
    most = sweep.limits.equivalent_high - 1
    low, high = (f"{100 * end:.3f}".replace("-", "−") for end in (at.low, at.high))
    longer = f"As a share of its own latency, the Trade waits longer by {low} to {high} percentage points"
    text += f" {longer}, in {len(apart)} blocks; under 5 points count as the same."
    if max(abs(at.low), abs(at.high)) < most:
        return "CONFIRMED", text
    return ("CONTRADICTED" if at.low > most or at.high < -most else "INCONCLUSIVE"), text


def _read_lock_is_faster(parts: Parts) -> Finding:
    judged = parts["lock_strategies"].judged.get("read-write")
    return _is_faster(judged), brief(parts["lock_strategies"], "read-write")


def _read_lock_sets_apart(parts: Parts) -> Finding:
    """Finding on the claim that a read lock sets Lookup apart from Trade. The finding rests on Trade ÷ Lookup under
    read and write locks, divided by Trade ÷ Lookup under one mutex.

    A Trade takes more time than a Lookup for its messages and its work. The division removes this difference.
    """
    judgement = parts["lock_strategies"]
    arms = {each.setting.text("locking"): each for each in judgement.sweep.arms if not each.copy}
    apart = {name: mean_log_ratios(judgement, (arm, "trade"), (arm, "lookup")) for name, arm in arms.items()}
    one, other = apart["read-write"], apart["mutex"]
    beside = [one[block] - other[block] for block in one if block in other]
    if judgement.look is None or len(beside) < BLOCKS_MIN:
        return "INCONCLUSIVE", "There are too few blocks for a verdict."
    told = [
        f"{name} {ratio_with_ends(ratio_interval([*apart[name].values()], judgement.confidence))}"
        for name in ("read-write", "mutex")
    ]
    at = ratio_interval(beside, judgement.confidence)
    text = f"Trade ÷ Lookup: {', '.join(told)}. The first ÷ the second: {ratio_with_ends(at)}."
    low, high = judgement.sweep.limits.equivalent_low, judgement.sweep.limits.equivalent_high
    if low < at.low and at.high < high:
        return "CONTRADICTED", f"{text} A ratio within 5 % of 1 counts as equal."
    different = sign_flip_p(beside) < judgement.sweep.level and not at.low <= 1 <= at.high
    return ("CONFIRMED" if different and (at.low > high or at.high < low) else "INCONCLUSIVE"), text


def _no_jump(parts: Parts) -> Finding:
    """Finding on the claim that latency does not jump. In a jump, the growth factor of the latency is over 5 % larger
    than the growth factor of the number of clients. Lookups that compute decide the claim.
    """
    text = " ".join(brief(parts["stock"], each) for each in ("computing_sockets", "past_pool"))
    for judged in found(parts["stock"], "computing_sockets"):
        if not judged.rulings or judged.verdict is Verdict.INCONCLUSIVE:
            break
        if judged.verdict is not Verdict.SUPERLINEAR or judged.by_less_than_5:
            return "CONFIRMED", text
        if judged.typical.low > judged.equivalent[1] * judged.rulings[0].against:
            return "CONTRADICTED", text
    return "INCONCLUSIVE", text


def _surplus_starves(parts: Parts) -> Finding:
    """Finding on the claim that surplus clients starve, where a connection holds its thread. CONFIRMED where some
    client gets no reply in every window that has more connections than threads.
    """
    judgement = parts["dispatch"]
    windows = [
        window.starved_clients
        for arm in judgement.sweep.arms
        if arm.setting["dispatch"] == "connection" and arm.connections > arm.setting.whole("workers")
        for window in counted_windows(judgement, arm)
    ]
    starving = sum(starved > 0 for starved in windows)
    text = f"Clients got no reply in {starving} of {len(windows)} windows with more connections than threads."
    if not windows:
        return "INCONCLUSIVE", "No window with more connections than threads was run."
    if judgement.look is None:
        return "INCONCLUSIVE", f"{text} {next(state_sentences(judgement))}"
    if starving == len(windows):
        return "CONFIRMED", text
    return ("INCONCLUSIVE" if starving else "CONTRADICTED"), text


def _is_faster(judged: Judged | None) -> ClaimVerdict:
    if judged is None or judged.verdict is Verdict.INCONCLUSIVE:
        return "INCONCLUSIVE"
    return "CONFIRMED" if judged.verdict is Verdict.FASTER else "CONTRADICTED"


ENTRIES: tuple[Entry[Parts], ...] = (
    Entry(
        f"With one client a Lookup takes {GRPC_MS} ms on gRPC (figure 2) and {SOCKETS_MS} ms on sockets (figure 4).",
        _milliseconds,
        part="stock",
    ),
    Entry(
        "Lookup is more efficient on sockets than on gRPC: the time on sockets ÷ the time on gRPC is "
        f"{SOCKETS_MS / GRPC_MS:.2f}. The document gives no interval.",
        _sockets_are_faster,
        part="stock",
    ),
    Entry("The reason could be the lock that a Lookup takes on gRPC.", _the_lock_is_why, part="stock"),
    Entry("The server on sockets needs no lock, since it writes nothing.", _no_lock_needed, part="stock"),
    *(
        Entry(f"{text}: latency rises with the number of clients.", _rises(figure, growth), part="stock")
        for figure, (growth, text) in RISING.items()
    ),
    Entry(
        "Latency rises because each request is a task. With a thread for each connection, latency would stay constant "
        "up to the pool's size.",
        _constant_up_to_the_pool,
        part="dispatch",
    ),
    Entry("Trade takes about as long as Lookup (figures 2 and 3).", _trade_is_like_lookup, part="stock"),
    Entry(
        "Synchronization costs Trade and Lookup the same, since both take the same lock.",
        _lock_costs_both_the_same,
        part="lock_waits",
    ),
    Entry(
        "A read lock is faster than a write lock, so Lookup would gain from a read lock.",
        _read_lock_is_faster,
        part="lock_strategies",
    ),
    Entry(
        "With a read lock for Lookup and a write lock for Trade, the latencies of Lookup and Trade would differ.",
        _read_lock_sets_apart,
        part="lock_strategies",
    ),
    Entry(f"Past the pool of {POOL} threads, latency does not jump (figure 5).", _no_jump, part="stock"),
    Entry(
        "There is no jump because each request is a task. With a thread for each connection, clients beyond the "
        "pool's size would wait drastically longer.",
        _surplus_starves,
        part="dispatch",
    ),
)
"""Every claim, in the document's order."""
