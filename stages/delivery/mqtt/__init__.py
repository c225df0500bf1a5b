"""MQTT: the connection, topics, and what stands there for Home Assistant and ONVIF. For `sink_mqtt`."""
