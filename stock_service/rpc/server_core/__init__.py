"""Core of a server for any protocol: accepting, reading, admission control, dispatch to an executor, and the drain.

A ``WireProtocol`` (``protocol.py``) decodes the bytes of requests, and encodes replies, without I/O. Linux only: the
reading thread sleeps in epoll, and other threads wake this thread through an eventfd.
"""
