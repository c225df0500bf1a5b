"""The web service of a run: metrics, health, cameras, incidents, and a page to look at. Start with `serve.py`.

    serve      the stage: it takes events, and its HTTP server lives in a thread of its process
    shapes/    zones and lines, drawn on the page
    model/     pictures of a client, looked at by the model of the run
    live/      video, pictures and people while somebody watches
    history/   past events, and incidents with their files
    run/       the run as it is now, asked over its control socket
    web/       what all calls share: server, application, roles, quotas, threads
    page/      the page: HTML, CSS and modules of JavaScript

The calls of a subject are in its package, in files called `..._calls.py`. The first four packages do not import each
other; all of them may import `run` and `web`.

A stage may not know how the run works, and this one asks the run about itself: so it lives here, and not in
`stages/`.
"""
