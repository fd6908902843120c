"""Checks that the instrument is right: its statistics, its clock, its load, its differences."""
