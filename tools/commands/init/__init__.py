"""`camgraph init`: from nothing to a graph that watches your cameras, by questions in plain words.

command       the options; what is not given by one is asked for
dialog        questions on a terminal, answers of options, or neither
cameras       one camera after the other: address, password, a look at its picture, a name
address       what people type as the address of a camera
trial         a real connection, through the stage `capture`, in bounded time
discovery     cameras that answer on the local network (WS-Discovery)
onvif         the stream of such a camera
soap          what both send and read, bounded
wishes        what to tell, when, and how
bed           the actions about a bed, whose zone is drawn later
chats         which chat an address belongs to
mail_trial    a login at the mail server, and its certificate
texts         graph.yaml, rules.yaml, secrets.env
placing       all of the files, or none

Start with `command.py`. Only `placing.py` writes files.
"""
