"""What carries a request, and knows no stock: services, executors, transports, the process contract."""
