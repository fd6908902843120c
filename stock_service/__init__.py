"""The stock service: Lookup, Trade and Update of stocks in a catalog, on any transport."""
