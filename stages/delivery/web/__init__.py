"""Web servers: addresses, requests, signatures, and what answers mean. For `sink_webhook`."""
