"""Histories: clients' requests and the replies with their times, and the check that some sequential order explains
them."""
