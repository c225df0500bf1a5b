"""Mails: their words and pictures, and the meaning of the answers of mail servers. For `sink_email`.

Start with `mail_message.py` (the mail), then `mail_server.py` (the conversation) and `mail_answers.py` (what answers
mean); `postponed.py` keeps the mails that some have not got yet. Nothing here decides which events are sent.
"""
