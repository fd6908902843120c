"""``python -m experiments compare A B``: the ratio of two servers' response times, with its interval and a verdict."""
