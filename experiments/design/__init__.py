"""Design of a measurement: factors, settings, arms, groups, comparisons, and the drawn order of slices. Pure."""
