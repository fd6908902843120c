"""Code that carries requests, and knows no stocks: services, executors, transports, the process contract."""
