"""What was measured, as it is kept: blocks, rows, files with a version, and the machine. Nothing here measures."""
