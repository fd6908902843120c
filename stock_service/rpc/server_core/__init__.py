"""A server of requests that knows no protocol: accepting, reading, admission, an executor's threads, and the drain.

A ``WireProtocol`` (``protocol.py``), which does no I/O, decides the meaning of bytes. Linux only: the reading thread
sleeps in epoll and is woken through an eventfd.
"""
