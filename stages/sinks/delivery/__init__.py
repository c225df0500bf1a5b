"""The parts that sinks share which deliver events to others: brokers, web servers, people.

    event --selection: only, never--> --merging: merge, cooldown--> --send, attempts--> the other side
                                                                        '--refused, expired--> dead letters

Start with `event_sink.py`, the base of such a sink. Its decisions are pure: events and times in, decisions out
(`selection.py`, `merging.py`, and the classes at the end of `event_sink.py`).

    event_view, event_words, measured_words, template      an event as filters and texts see it
    incident_rows, event_formats, syslog_message       an event as bytes
    broker, bounded_line, tls              connections: an address, who we are, and bounds for what the other side does
    durations, footage_files               settings that several sinks have
    mail/, mqtt/, web/                     one protocol each

No module here imports a sink.
"""
