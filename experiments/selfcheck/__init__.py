"""Checks that the instrument is right: statistics, clock, load, and the ratios between servers."""
