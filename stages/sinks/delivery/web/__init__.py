"""Web servers: addresses, requests, signatures, alerts of chats, and the meaning of answers. For `sink_webhook`.

Start with `web_client.py` (a request) and `answers.py` (the meaning of an answer). Only the client opens a
connection.
"""
