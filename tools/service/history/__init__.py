"""The past of a run: its events, and its incidents with their reasons, files and labels.

Start with `event_history.py`, the events in SQLite. `event_calls` gives pages of them and streams new ones.

    incident_calls          the calls about incidents
    all_incidents           both of the following as one list
    kept_incidents          those of a folder of `sink_footage`
    remembered_incidents    those of the history: no pictures, no clips

Nothing here asks the run.
"""
