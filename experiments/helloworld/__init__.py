"""Generated from protos/experiments/helloworld by `make generate`; never edited."""
