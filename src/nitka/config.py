"""The only reader of the environment: one frozen value, built once at the door and passed inward.

Rules: an unset and an empty variable are the same. Values are checked here and nowhere repaired. All that is wrong is
told in ONE `BadInput` that names the variables and never their values, since any of them may hold a secret. Nothing is
made on disk.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote, urlsplit

from nitka.errors import BadInput

OPENAI = "https://api.openai.com/v1"
TRACES = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
SECRETS = re.compile(r" *whsec_[A-Za-z0-9+/]{32,88}={0,2}( +whsec_[A-Za-z0-9+/]{32,88}={0,2})* *")


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """How the server is run. `grace` is what open answers have at a stop, in seconds; `body_bytes` the most of one
    request. `watch` maps tenants to the purpose for which they are watched. `webhook_secrets` are joined by spaces.
    """

    host: str = "127.0.0.1"
    port: int = 8080
    workers: int = 1
    grace: float = 30.0
    body_bytes: int = 20 << 20
    fold_model: str = ""  # what writes summaries and facts, where it is not the model itself
    anonymous: bool = False  # without a user or a session a request is passed through, and nothing kept; else refused
    watch: Mapping[str, str] = field(default_factory=dict)
    webhook: str = field(default="", repr=False)  # where alerts are delivered
    webhook_secrets: str = field(default="", repr=False)
    folds: bool = True  # whether what becomes due is done in the serving processes
    traces: bool = False  # export spans, as OpenTelemetry's own variables say
    shared_numbers: Path | None = None  # the folder in which several processes count


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the environment says. Fields that may hold a secret (also as a password inside a URL) stay out of `repr`.

    `root_keys` is the raw text of `NITKA_ROOT_KEYS`, for the vault to read. `store` is a database URL, `keys_store`
    that of the database for the wrapped keys, where PostgreSQL keeps them apart. `model` is what `models.choose` takes.
    `timeout` is the longest silence of a model's server, in seconds. `serving` is for `nitka
    serve` alone.
    """

    base_url: str = field(default=OPENAI, repr=False)
    api_key: str = field(default="", repr=False)
    root_keys: str = field(default="", repr=False)
    key_file: Path
    store: str = field(repr=False)
    keys_store: str = field(default="", repr=False)
    model: str = "offline"
    timeout: float = 60.0
    serving: Serving = field(default_factory=lambda: Serving())

    @classmethod
    def read(cls, environ: Mapping[str, str] = os.environ) -> Settings:
        """Read the variables named in `CHECKS`; raises `BadInput`.

        Default places follow the XDG Base Directory Specification: keys in the configuration folder, the database in
        the data folder.
        """
        wrong = [name for name, good in CHECKS.items() if environ.get(name) and not good(environ[name])]
        if wrong:
            raise BadInput(f"Environment: {', '.join(wrong)} cannot be used as it is.")
        home = Path(environ.get("HOME") or Path.home())
        data = _xdg(environ, "XDG_DATA_HOME", home / ".local" / "share")
        keys = _xdg(environ, "XDG_CONFIG_HOME", home / ".config") / "nitka" / "keys.json"
        return cls(
            base_url=(environ.get("OPENAI_BASE_URL") or OPENAI).rstrip("/"),
            api_key=environ.get("OPENAI_API_KEY", ""),
            root_keys=environ.get("NITKA_ROOT_KEYS", ""),
            key_file=_under(home, environ["NITKA_KEY_FILE"]) if environ.get("NITKA_KEY_FILE") else keys,
            store=environ.get("NITKA_STORE") or f"sqlite:///{quote(bytes(data / 'nitka' / 'nitka.db'))}",
            keys_store=environ.get("NITKA_KEYS", ""),
            model=environ.get("NITKA_MODEL") or "offline",
            timeout=float(environ.get("NITKA_TIMEOUT") or 60),
            serving=Serving(
                host=environ.get("NITKA_HOST") or "127.0.0.1",
                port=int(environ.get("NITKA_PORT") or 8080),
                workers=int(environ.get("NITKA_WORKERS") or 1),
                grace=float(environ.get("NITKA_GRACE") or 30),
                body_bytes=int(environ.get("NITKA_BODY_BYTES") or 20 << 20),
                fold_model=environ.get("NITKA_FOLD_MODEL", ""),
                anonymous=environ.get("NITKA_ANONYMOUS") == "passthrough",
                watch=purposes(environ["NITKA_WATCH"].split(";")) or {} if environ.get("NITKA_WATCH") else {},
                webhook=environ.get("NITKA_WEBHOOK_URL", ""),
                webhook_secrets=environ.get("NITKA_WEBHOOK_SECRET", ""),
                traces=any(map(environ.get, TRACES)),
            ),
        )


def tiktoken_tables(encoding: str, environ: Mapping[str, str] = os.environ) -> Path:
    """Where `tiktoken` keeps the table of an encoding once it has it (its `load.py`: SHA-1 of the table's address)."""
    source = f"https://openaipublic.blob.core.windows.net/encodings/{encoding}.tiktoken"
    folder = environ.get("TIKTOKEN_CACHE_DIR") or environ.get("DATA_GYM_CACHE_DIR")
    name = hashlib.sha1(source.encode(), usedforsecurity=False).hexdigest()
    return Path(folder or Path(tempfile.gettempdir()) / "data-gym-cache") / name


def purposes(entries: Iterable[str]) -> dict[str, str] | None:
    """Tenants and the purpose for which they are watched, from "TENANT=PURPOSE" each, or "PURPOSE" where there are no
    tenants. None where one has no purpose, or is there twice.
    """
    found: dict[str, str] = {}
    for entry in entries:
        before, equals, after = (part.strip() for part in entry.partition("="))
        tenant, purpose = (before, after) if equals else ("", before)
        if not purpose or tenant in found or (equals and not tenant):
            return None
        found[tenant] = purpose
    return found


def share_numbers(folder: Path) -> None:
    """Has the processes that are started from now on count in this folder (prometheus-client reads it here alone)."""
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(folder)


def web_url(value: str) -> bool:
    """Whether a value is an http or https URL with a host and, if any, a port in range."""
    if not _printable(value):
        return False
    try:
        parts = urlsplit(value)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        return False


def _printable(value: str) -> bool:
    """One word of visible ASCII: what an HTTP header or a URL can carry unchanged."""
    return value.isascii() and value.isprintable() and " " not in value


def _text(value: str) -> bool:
    """Printable, not blank, and valid Unicode, which the bytes of an environment need not be."""
    return value.isprintable() and bool(value.strip())


def _lines(value: str) -> bool:
    """As `_text`, but it may span lines."""
    return all(_text(line) or not line.strip() for line in value.splitlines()) and bool(value.strip())


def _store(value: str) -> bool:
    """A database URL. What it may say is for the store to judge; here only that it has a scheme."""
    return _text(value) and "://" in value


def _seconds(value: str) -> bool:
    """A number of seconds that is worth waiting, and not for ever."""
    return value.isascii() and value.replace(".", "", 1).isdigit() and 0.1 <= float(value) <= 86_400


def _number(least: int, most: int) -> Callable[[str], bool]:
    """A whole number within bounds."""
    return lambda value: value.isascii() and value.isdigit() and len(value) < 12 and least <= int(value) <= most


CHECKS: Mapping[str, Callable[[str], bool]] = {
    "OPENAI_BASE_URL": web_url,
    "OPENAI_API_KEY": _printable,
    "NITKA_ROOT_KEYS": _lines,
    "NITKA_KEY_FILE": _text,
    "NITKA_STORE": _store,
    "NITKA_KEYS": _store,
    "NITKA_MODEL": _text,
    "NITKA_TIMEOUT": _seconds,
    "NITKA_HOST": _printable,
    "NITKA_PORT": _number(0, 65_535),
    "NITKA_WORKERS": _number(1, 256),
    "NITKA_GRACE": _seconds,
    "NITKA_BODY_BYTES": _number(1_024, 1 << 30),
    "NITKA_FOLD_MODEL": _text,
    "NITKA_WATCH": lambda value: _text(value) and purposes(value.split(";")) is not None,
    "NITKA_WEBHOOK_URL": web_url,
    "NITKA_WEBHOOK_SECRET": lambda value: SECRETS.fullmatch(value) is not None,
    "NITKA_ANONYMOUS": lambda value: value in ("refuse", "passthrough"),
}


def _xdg(environ: Mapping[str, str], name: str, default: Path) -> Path:
    """A base folder. The specification has relative values ignored."""
    value = Path(environ.get(name, ""))
    return value if value.is_absolute() else default


def _under(home: Path, value: str) -> Path:
    return home / value[2:] if value.startswith("~/") else Path(value)
