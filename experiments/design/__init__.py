"""Design of a measurement: factors, settings, arms, groups, comparisons, and the random order of slices. Pure."""
