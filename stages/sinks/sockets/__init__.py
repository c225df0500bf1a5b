"""The ways in which lines leave through a socket, for `sink_socket` and `sink_syslog`.

Start with `streams.py`, the base of all senders. The form of a line is not decided here: these modules send bytes.
"""
