"""The load client: sends requests from many clients, records their times, and states the uncertainty of its numbers."""
