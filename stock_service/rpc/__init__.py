"""Code that carries requests, and knows no stock: services, executors, transports, the process contract."""
