"""Judgement of a sweep's blocks: values, intervals, verdicts, and gates. No module here starts a server.

An **arm** is a server under a load. A **block** starts every server again, and measures every arm. A **comparison** is
the ratio of two arms, A ÷ B. A **gate** is a check of the measurements, which can withhold a verdict.
"""
