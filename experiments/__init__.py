"""The instrument, which measures servers and compares them: designs, measurements, statistics, figures and reports."""
