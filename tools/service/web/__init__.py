"""Serving over HTTP, whatever is asked for: the server, roles, bounds, threads, and the table of calls.

Start with `calls.py`, a call from its path to its answer. `app.py` makes the application of all calls.

    http_server     uvicorn over a socket that is bound before the run begins
    app, openapi    the ASGI application and the OpenAPI document, both made of the calls
    access          tokens, roles, sessions, rates, and the trusted names of hosts
    quotas          how many streams a client may have open
    thread_pools    bounded threads for each kind of blocking work, so that one that hangs keeps no other waiting
    queries         the parameters of a call
    withheld_paths  folders of the machine, which viewers do not see
    file_answer     a file, or a range of it, as an answer
    page_calls      the page of the folder `page`, and logging in to it

Nothing here asks the run or reads its events.
"""
