"""Core of a server for any protocol: accepting, reading, admission control, dispatch to an executor, and the drain.

A ``WireProtocol`` (``protocol.py``) decodes the bytes of requests, and encodes replies, without I/O. The core works
only on Linux: the reading thread sleeps in epoll, and other threads wake the reading thread through an eventfd.
"""
