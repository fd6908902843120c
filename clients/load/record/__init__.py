"""Measurements of a load run: the moments of each request, histograms of the times, and the result."""
