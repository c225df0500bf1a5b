"""The parts that sinks share which deliver events to others: brokers, web servers, people.

    event --selection: only, never--> --merging: merge, cooldown--> --send, attempts--> the other side
                                                                        '--refused, expired--> dead letters

`event_sink.py` is the base of such a sink; begin there. Everything else is pure: events and times in, decisions out.
Nothing here knows a protocol.
"""
