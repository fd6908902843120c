"""The process contract: command lines, the ready line, signals."""
