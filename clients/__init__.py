"""Programs that call the service: a trader, a price updater, and the load client, which measures the service."""
