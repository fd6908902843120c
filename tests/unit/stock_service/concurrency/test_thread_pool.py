"""The standard library's pool, bounded: threads come as they are needed, up to a number, and tasks in order."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Thread, current_thread

from stock_service.concurrency.thread_pool import ThreadPool
from tests.conformance.gates import WAIT_S, Gate, execute, occupy, running


def test_tasks_start_in_the_order_of_acceptance() -> None:
    """With one thread, first come, first served."""
    order: list[int] = []
    with running(ThreadPool, 1, 40) as (pool, gate):
        occupy(pool, gate, 1)
        for number in range(20):
            pool.execute(partial(order.append, number))
        assert pool.execute_all([partial(order.append, number) for number in range(20, 40)]) == 20
    assert order == list(range(40))


def test_there_are_no_more_threads_than_workers() -> None:
    """However many tasks come; the threads have the pool's name."""
    threads: set[Thread] = set()
    with running(ThreadPool, 2, 50) as (pool, _):
        for _ in range(50):
            execute(pool, lambda: threads.add(current_thread()))
    assert 1 <= len(threads) <= 2
    assert all(thread.name.startswith("thread-pool_") for thread in threads)


def test_grpcio_is_given_the_pool_itself() -> None:
    """``pool`` is the library's own executor: it runs what is submitted, and its threads end with ``stop``."""
    pool, gate = ThreadPool(1, 1), Gate()
    assert isinstance(pool.pool, ThreadPoolExecutor)
    future = pool.pool.submit(gate.stand)
    gate.wait_for(1)
    gate.open()
    assert pool.stop(WAIT_S)
    assert future.done()
