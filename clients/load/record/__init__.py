"""Records of a run: moments of requests, their histograms, and the result."""
