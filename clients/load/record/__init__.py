"""Records of a run: moments of requests, folded into histograms, put together in a result."""
