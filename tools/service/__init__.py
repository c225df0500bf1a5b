"""The web service of a run: metrics, health, cameras, incidents, and a page to look at. Start with `serve.py`.

    serve           the stage: it takes events, and its HTTP server lives in a thread of its process
    http_server     uvicorn over a socket that is bound before the run begins
    app             the ASGI application, made of calls
    calls           a call: its method, its path, the role that may make it, and the function that answers
    access          tokens, roles, sessions, rates, and the trusted names of hosts
    run_link        asks the run over its control socket, at most once a second for its state
    model_link      asks the model of the run about pictures of others; `spare_time` bounds the time of that
    thread_pools    bounded threads for each kind of blocking work, so that one that hangs keeps no other waiting
    event_history   past events, in SQLite
    *_calls         the calls, by subject
    page            the page: HTML, CSS and modules of JavaScript

A stage may not know how the run works, and this one asks the run about itself: so it lives here, and not in
`stages/`.
"""
