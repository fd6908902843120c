"""Code that carries requests of any service: services, executors, transports, the process contract."""
