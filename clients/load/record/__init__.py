"""What was seen: records, folded into histograms, put together in a result."""
