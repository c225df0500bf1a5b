"""Mails: their words and pictures, and what the answers of mail servers mean. For `sink_email`."""
