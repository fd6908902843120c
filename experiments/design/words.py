"""The words of an experiment, for the help of the commands that use them."""

WORDS = """\
Words:
  factor   what is varied, such as the transport
  level    where a factor stands, such as grpc
  arm      a server under a load, with every factor at a level
  block    servers started afresh, then every arm by turns; an interval is over blocks"""
"""Words of an experiment, a line each."""
