"""Records of a run: the moments of the requests, histograms of the times, and the result."""
