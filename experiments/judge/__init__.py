"""Judgement of blocks: values, intervals, verdicts, and the gates that withhold a verdict. Starts and draws nothing."""
