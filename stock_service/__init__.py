"""The stock service: Lookup, Trade and Update over a lock-protected catalog, on any transport."""
