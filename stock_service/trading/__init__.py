"""What a stock is, and what may be done with it; knows no wire. ``service.py`` says it in protobuf."""
