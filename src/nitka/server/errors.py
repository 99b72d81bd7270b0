"""Every error as an HTTP answer: the one place that knows statuses.

The form is OpenAI's: {"error": {"message", "type", "param", "code"}}; where the watch is asked, whose wire form is
another's, it is {"statusCode", "message"}. A message is one of ours and never holds what was sent: of a body that does
not fit, it names the path and what is wrong there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from nitka import errors
from nitka.errors import NitkaError

MAX_PATH = 6  # steps of a path into a body that are told
WATCH_PATHS = (
    "/parse",
    "/languages",
    "/memory/",
    "/transform",
    "/detectLanguage",
    "/similarity",
    "/compare/",
    "/helper/",
)


class Refusal(NitkaError):
    """The request was refused."""

    def __init__(
        self,
        message: str,
        *,
        status: int = 400,
        code: str | None = None,
        param: str | None = None,
        headers: Mapping[str, str] | None = None,
        kind: str = "",
    ) -> None:
        Exception.__init__(self, message)
        self.status = status
        self.code = code
        self.param = param
        self.headers = dict(headers or {})
        self.kind = kind or kind_of(status)


STATUS: Mapping[type[NitkaError], tuple[int, str]] = {
    errors.OverBudget: (400, "context_length_exceeded"),
    errors.KeyReused: (422, "turn_key_reused"),
    errors.AlreadyKnown: (409, "already_known"),
    errors.BadId: (400, "bad_id"),
    errors.BadText: (400, "bad_text"),
    errors.BadInput: (400, "bad_input"),
    errors.Forgotten: (410, "forgotten"),
    errors.StoreBusy: (503, "store_busy"),
    errors.StoreError: (503, "store_error"),
    errors.Damaged: (500, "damaged"),
    errors.KeyMissing: (500, "server_key_missing"),
    errors.WrongKey: (500, "server_key_wrong"),
    errors.ModelError: (502, "model_error"),
}
"""Status and code of each error; of a class that is not named, those of the first of its ancestors that is."""

_KINDS = {401: "authentication_error", 403: "permission_error", 404: "not_found_error", 429: "rate_limit_error"}
_CODES = {404: "not_found", 405: "method_not_allowed", 400: "bad_request", 413: "too_large", 415: "unsupported_type"}


def kind_of(status: int) -> str:
    """OpenAI's `type` for a status."""
    return _KINDS.get(status, "server_error" if status >= 500 else "invalid_request_error")


def body_of(message: str, *, kind: str, code: str | None = None, param: str | None = None) -> dict[str, Any]:
    """The body of an error."""
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def refusal_of(error: NitkaError) -> Refusal:
    """One of nitka's errors as the HTTP answer it stands for."""
    if isinstance(error, Refusal):
        return error
    status, code = next((STATUS[kind] for kind in type(error).__mro__ if kind in STATUS), (500, "server_error"))
    headers = {"Retry-After": "1"} if status == 503 else {}
    if isinstance(error, errors.ModelError) and error.status is not None:
        status = error.status if error.status in (400, 404, 408, 413, 422, 429) else 502
    return Refusal(str(error), status=status, code=code, headers=headers)


def response_of(error: NitkaError, path: str = "") -> JSONResponse:
    """The answer to a request to `path` that ended in one of nitka's errors."""
    told = refusal_of(error)
    body = body_of(str(told), kind=told.kind, code=told.code, param=told.param)
    if path.startswith(WATCH_PATHS):
        body = {"statusCode": told.status, "message": str(told)}
    return JSONResponse(body, status_code=told.status, headers=told.headers)


def validation_refusal(problems: Iterable[Mapping[str, Any]]) -> Refusal:
    """What does not fit in a request: where, and of what kind, the first of it. Never what was sent there: the names
    of unknown fields are the client's too.
    """
    first = next(iter(problems), {})
    kind = str(first.get("type", "invalid"))
    steps = tuple(first.get("loc", ()))
    steps = steps[:-1] if kind == "extra_forbidden" else steps  # the name of a field that is not ours
    path = "" if kind == "json_invalid" else path_of(steps)
    return Refusal(f"{path or 'The body'}: {kind.replace('_', ' ')}.", code="invalid_value", param=path or None)


def path_of(steps: Iterable[object]) -> str:
    """A path into a request, as `messages[0].content`. Steps that no schema of ours has are cut off."""
    path = ""
    for at, step in enumerate(steps):
        if at == 0 and step in ("body", "query", "header", "path", "cookie"):
            continue
        if at > MAX_PATH:
            break
        if isinstance(step, int):
            path += f"[{step}]"
        elif isinstance(step, str) and len(step) <= 40 and step.replace("_", "").replace("-", "").isalnum():
            path += f".{step}" if path else step
        else:
            break
    return path


def handle(app: FastAPI) -> None:
    """Lets the application answer errors as this page says."""

    async def ours(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, NitkaError)
        return response_of(error, request.scope["path"])

    async def unfit(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, RequestValidationError)
        return response_of(validation_refusal(error.errors()), request.scope["path"])

    async def other(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, HTTPException)
        words = {400: "The body could not be read.", 404: "There is nothing at this address.", 405: "Not this method."}
        message = words.get(error.status_code, "The request was refused.")
        code = _CODES.get(error.status_code)
        refusal = Refusal(message, status=error.status_code, code=code, headers=error.headers)
        return response_of(refusal, request.scope["path"])

    app.add_exception_handler(NitkaError, ours)
    app.add_exception_handler(RequestValidationError, unfit)
    app.add_exception_handler(HTTPException, other)
