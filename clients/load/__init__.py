"""The load client: many clients that send requests, record the times, and state their uncertainty."""
