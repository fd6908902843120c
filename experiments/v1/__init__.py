"""Generated from protos/experiments/v1 by `make generate`; never edited."""
