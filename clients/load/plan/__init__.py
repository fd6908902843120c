"""Plan of a load: the requests and their schedule, and the ways in which a request can end."""
