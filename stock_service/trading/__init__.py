"""Rules and catalogs of stocks, independent of transports. In this package only ``service.py`` uses protobuf."""
