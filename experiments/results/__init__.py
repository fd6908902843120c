"""Results of measurements: blocks, rows, files with a version, and the record of the machine. Measures nothing."""
