"""Checks that the measurements are right: statistics, clock, load, and the ratios between servers."""
