"""The process contract of every server: command line, ready line, signals, and exit codes."""
