"""Arrays in, arrays out: no clock, no socket, no file."""
