"""What is to be sent and when, and how a request can end."""
