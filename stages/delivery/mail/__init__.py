"""Mails: their words and pictures, and the meaning of the answers of mail servers. For `sink_email`.

Start with `mail_message.py` (the mail) and `mail_answers.py` (the answers): nothing here decides which events are
sent.
"""
