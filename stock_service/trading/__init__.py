"""Rules and catalogs of stocks, independent of transports. Only ``service.py`` uses protobuf."""
