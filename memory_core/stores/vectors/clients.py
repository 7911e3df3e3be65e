"""Where Chroma is: a folder, a server or memory, with one client for it and errors made ours.

Chroma keeps one engine per identifier in a registry of the process. What follows from that in
public reports is settled here: two spellings of a folder are two engines that do not see each
other's records, all in-memory clients share one, and an engine whose folder vanished stays broken
until the process ends.

:class:`Place` holds the client; all calls go through its :meth:`~Place.guard`, which turns what
Chroma raises into our errors and notices when the folder vanished or the server went away.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, urlsplit

import chromadb
import httpx
from chromadb.api import ClientAPI, ServerAPI
from chromadb.api.client import Client
from chromadb.api.shared_system_client import SharedSystemClient
from chromadb.config import Settings, System
from chromadb.errors import ChromaError, NotFoundError
from chromadb.telemetry.product import ProductTelemetryClient

from memory_core.errors import CollectionGone, InvalidInput, MemoryInspectorError, VectorError

_DATABASE_FILE = "chroma.sqlite3"
_REGISTRY = threading.Lock()


class Place:
    """One client of one place, which ``where`` names; a place that does not last stays open.

    Without ``at_once`` the client is made when it is first needed.
    """

    def __init__(
        self,
        connect: Callable[[], ClientAPI],
        *,
        where: str,
        folder: Path | None = None,
        lasting: bool = True,
        at_once: bool = True,
    ) -> None:
        self.where = where
        self._connect = connect
        self._folder = folder
        self._lasting = lasting
        self._file: tuple[int, int] | None = None
        self._client: ClientAPI | None = None
        if at_once:
            with self.guard():
                self._client = connect()
            self._file = self._identity()

    @property
    def client(self) -> ClientAPI:
        """The client, to be used within :meth:`guard`."""
        if self._client is None:
            self._client = self._connect()
            self._file = self._identity()
        return self._client

    def reload(self) -> None:
        """Connect anew, so that what others wrote is seen, or a vanished folder is made again."""
        if not self._lasting:
            return
        if self._folder is not None:
            let_go(self._folder)
        self._file = None
        with self.guard():
            self._client = self._connect()
        self._file = self._identity()

    @contextmanager
    def guard(self) -> Iterator[None]:
        """Turn Chroma's errors into ours."""
        if self._vanished():
            raise self._gone()
        try:
            yield
        except MemoryInspectorError:
            raise
        except NotFoundError as exc:
            raise CollectionGone(f"The collection is no longer in {self.where}.") from exc
        except httpx.TimeoutException as exc:
            raise VectorError(f"Chroma at {self.where} gave no answer in time.") from exc
        except Exception as exc:
            if self._vanished():
                raise self._gone() from exc
            if isinstance(exc, httpx.HTTPError) or "Could not connect" in str(exc):
                raise CollectionGone(
                    f"Nothing answers at {self.where}.",
                    next_step="Start the server (chroma run) or correct its URL, then reload.",
                ) from exc
            if isinstance(exc, (ChromaError, ValueError, OSError)):
                raise VectorError(f"Chroma in {self.where} failed: {exc}") from exc
            raise

    def _identity(self) -> tuple[int, int] | None:
        if self._folder is None:
            return None
        try:
            status = (self._folder / _DATABASE_FILE).stat()
        except OSError:
            return None
        return status.st_dev, status.st_ino

    def _vanished(self) -> bool:
        return self._file is not None and self._identity() != self._file

    def _gone(self) -> CollectionGone:
        return CollectionGone(f"The folder {self.where} was removed or replaced while in use.")


def _settings(**more: Any) -> Settings:
    return Settings(anonymized_telemetry=False, **more)


def in_folder(folder: Path) -> ClientAPI:
    """Return a client of a folder, made if it is not there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return chromadb.PersistentClient(str(folder), settings=_settings())
    except ValueError as exc:
        # Another part of this process opened the folder with other settings: two engines on one
        # folder do not see each other's records, so its engine is shared.
        shared = SharedSystemClient._identifier_to_system.get(str(folder))  # noqa: SLF001
        if shared is None:
            raise
        try:
            return Client(settings=shared.settings)
        except ValueError:
            raise exc from None


def in_memory() -> ClientAPI:
    """Return a client of a database of its own; ``EphemeralClient`` would share one per process.

    It leaves the registry of shared engines as it was, so others' in-memory clients, with
    whatever settings, go on as before.
    """
    with _REGISTRY:
        registry = SharedSystemClient._identifier_to_system  # noqa: SLF001
        before = registry.pop("ephemeral", None)
        try:
            system = System(_settings(is_persistent=False))
            for part in (ProductTelemetryClient, ServerAPI):
                system.instance(part)
            system.start()
            return Client.from_system(system)
        finally:
            registry.pop("ephemeral", None)
            if before is not None:
                registry["ephemeral"] = before


def server(address: SplitResult, timeout: float) -> ClientAPI:
    """Return a client of a Chroma server; it waits ``timeout`` seconds for each answer."""
    # subtle: Chroma's own client would wait for ever, also while it is being made
    httpx.get(f"{address.geturl()}/api/v2/heartbeat", timeout=timeout).raise_for_status()
    secure = address.scheme == "https"
    client = chromadb.HttpClient(
        host=address.hostname or "",
        port=address.port or (443 if secure else 80),
        ssl=secure,
        settings=_settings(),
    )
    session = getattr(client._server, "_session", None)  # type: ignore[attr-defined]  # noqa: SLF001
    if isinstance(session, httpx.Client):
        session.timeout = httpx.Timeout(timeout)
    return client


def address_of(url: str) -> SplitResult:
    """Return the parts of a server's URL, without a password."""
    try:
        address = urlsplit(url)
        valid = address.scheme in ("http", "https") and address.hostname and address.port != 0
    except ValueError as exc:
        raise InvalidInput(f"The Chroma URL {url!r:.80} cannot be read: {exc}.") from exc
    if not valid:
        raise InvalidInput(f"The Chroma URL must look like http://host:8000, not {url!r:.80}.")
    return SplitResult(address.scheme, address.netloc.rpartition("@")[2], "", "", "")


def let_go(folder: Path) -> None:
    """Drop this process's engine of a folder, so that the next client starts a fresh one."""
    with _REGISTRY:
        name = str(folder)
        SharedSystemClient._identifier_to_system.pop(name, None)  # noqa: SLF001
        SharedSystemClient._identifier_to_refcount.pop(name, None)  # noqa: SLF001
