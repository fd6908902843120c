"""Judgement of a sweep's blocks: values, intervals, verdicts, and gates. No module here starts a server.

An **arm** is a server under a load. In a **block** every server is started again, and every arm is measured. A
**comparison** is the ratio of two arms, A ÷ B. A **gate** checks the measurements, and can withhold a verdict.
"""
