"""A server of requests that knows no protocol: accepting, reading, admission, an executor's threads, and the drain.

What bytes mean is a ``WireProtocol``'s to say (``protocol.py``), which does no I/O. Linux only: the reading thread
sleeps in epoll and is woken through an eventfd.
"""
