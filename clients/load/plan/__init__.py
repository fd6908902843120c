"""Plan of a load: the requests, the schedule of the requests, and the possible outcomes of a request."""
