"""The load client: many clients that send, record what they see, and say how sure that is."""
