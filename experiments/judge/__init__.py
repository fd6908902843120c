"""Judgement of blocks: values, intervals, verdicts, and the gates that keep one back. Starts and draws nothing."""
