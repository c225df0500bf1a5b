"""Where events, frames and tracks leave: a file for each sink, and the parts that they share.

    delivery, sockets   sinks that deliver to others
    writing             sinks that write files
    footage             pictures and clips of incidents, for `sink_footage`
    handover            sinks that lead to a program of the user

Start with `delivery/event_sink.py`, the base of sinks of events, then `sink_redis.py`. No sink decides what an event
is.
"""
