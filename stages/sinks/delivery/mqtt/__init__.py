"""MQTT: the connection, topics, and the retained states for Home Assistant and ONVIF. For `sink_mqtt`.

Start with `mqtt_link.py` (the connection) and `present_states.py` (the states). Nothing here decides which events
are sent.
"""
