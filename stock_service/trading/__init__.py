"""The rules and catalogs of stocks, without any wire; ``service.py`` alone speaks protobuf."""
