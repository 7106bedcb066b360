"""The world container of a rollout Pod: fetches its bundles, serves one session, seals it.

What it cannot do is said in the termination message, which the operator reads. A container that
the kubelet restarted has lost its state: it finds its own marker and refuses.
"""

import asyncio
import logging
import signal
import sqlite3
from dataclasses import replace
from pathlib import Path

from starlette.applications import Starlette

from wavetank.api.wire import BundleRef, WorldMessage
from wavetank.bundles.pack import unpack, validate_archive
from wavetank.bundles.world import Half
from wavetank.bundles.world.config import alias_problem
from wavetank.core.causes import Cause
from wavetank.core.errors import Finding, Severity, SpecError
from wavetank.store.client import StoreClient, StoreRefused, StoreUnavailable, until
from wavetank.worlds.clock import utc_now
from wavetank.worlds.keeper import Keeper
from wavetank.worlds.opening import open_folders
from wavetank.worlds.sealing import MessageFile, StoreSealer, world_failed
from wavetank.worlds.server import create_app, failed_app
from wavetank.worlds.serving import Server
from wavetank.worlds.session import Opening, Session
from wavetank.worlds.settings import Settings

_LOG = logging.getLogger("wavetank.worlds")

_FETCH_SECONDS = 600.0
"""How long bundles are asked for while the store is away; the operator's own limit is shorter."""


async def run(settings: Settings) -> int:
    """Serve until SIGTERM; return the exit code."""
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    message = MessageFile(settings.termination_log, settings.state / "message.json")
    marker = settings.state / "marker"
    if marker.exists():
        earlier = message.earlier() or world_failed(
            "the world server ended without a word and was started again; its state is lost."
        )
        message.write(earlier)
        _LOG.warning("restarted message=%r", earlier.message)
        await _serve(failed_app(earlier), settings, stopping)
        return 1
    marker.touch()
    async with StoreClient(settings.session.store, settings.token_file.read_text) as store:
        opening = await _opened(settings, store, stopping)
        if isinstance(opening, WorldMessage):
            message.write(opening)
            _LOG.error("not opened cause=%s message=%r", opening.cause, opening.message)
            return 1
        try:
            session = Session(opening, settings.state, utc_now)
        except sqlite3.Error as error:
            message.write(world_failed(f"the seed rows cannot be loaded: {error}"))
            return 1
        keeper = Keeper(session, StoreSealer(settings.session, store, message, settings.state))
        await _serve(create_app(keeper), settings, stopping, keeper)
    return 0


async def _serve(
    app: Starlette, settings: Settings, stopping: asyncio.Event, keeper: Keeper | None = None
) -> None:
    server = Server(app, settings.host, settings.port)
    _LOG.info("serving url=%s", server.url)
    serving = asyncio.create_task(server.run_until_told())
    told = asyncio.create_task(_stop(server, stopping, keeper))
    await serving
    stopping.set()
    await told


async def _stop(server: Server, stopping: asyncio.Event, keeper: Keeper | None) -> None:
    """Seal, then end the server: until then it answers those who wait for the seal."""
    await stopping.wait()
    if keeper is not None:
        await keeper.interrupt()
    server.should_exit = True


async def _opened(
    settings: Settings, store: StoreClient, stopping: asyncio.Event
) -> Opening | WorldMessage:
    """Return what to serve, or why there is nothing."""
    opening = asyncio.create_task(_open(settings, store))
    stopped = asyncio.create_task(stopping.wait())
    await asyncio.wait({opening, stopped}, return_when=asyncio.FIRST_COMPLETED)
    if not opening.done():
        opening.cancel()
        return world_failed("the world server was told to stop before it had started.")
    stopped.cancel()
    try:
        return opening.result()
    except StoreUnavailable as error:
        return WorldMessage(cause=Cause.STORE_UNAVAILABLE, message=str(error)[:1000])
    except StoreRefused as error:
        return world_failed(f"the bundles cannot be fetched: {error}")
    except SpecError as error:
        return world_failed(str(error))


async def _open(settings: Settings, store: StoreClient) -> Opening:
    spec = settings.session
    root = settings.state / "bundles"
    deadline = asyncio.get_running_loop().time() + _FETCH_SECONDS
    for ref in spec.bundles:
        if ref.alias and (wrong := alias_problem(ref.alias)):
            raise SpecError([Finding(Severity.FAULT, f"bundle {ref.digest}", wrong)])
        await _fetch(store, ref, root, deadline)
    linked = {ref.alias: root / "linked" / ref.alias for ref in spec.bundles if ref.alias}
    opening = await asyncio.to_thread(
        open_folders, root / "main", linked, spec.task, spec.seed, {Half.AGENT}
    )
    return replace(opening, deadline_seconds=spec.deadline_seconds)


async def _fetch(store: StoreClient, ref: BundleRef, root: Path, deadline: float) -> None:
    """Unpack one bundle over what is there already."""
    archive = await until(deadline, lambda: store.get(f"/v1/bundles/{ref.digest}"))
    found = validate_archive(archive)
    if found != ref.digest:
        text = f"the store gave other files: {found}."
        raise SpecError([Finding(Severity.FAULT, f"bundle {ref.digest}", text)])
    unpack(archive, root / "linked" / ref.alias if ref.alias else root / "main")
