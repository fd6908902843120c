"""Generated from protos/stock_service/v1 by `make generate`; never edited."""
