"""Core of a server for any protocol: accepting, reading, admission, dispatch to an executor, and the drain.

A ``WireProtocol`` (``protocol.py``), which does no I/O, gives the bytes their meaning. Linux only: the reading thread
sleeps in epoll and is woken through an eventfd.
"""
