"""Who may call: keys, the gateway's internal key, and the guard around every route.

The check wraps the routed endpoint itself, so no spelling of a URL goes around it.
Only the routes in `OPEN_ROUTES` need no key; the list is short on purpose.
"""

from __future__ import annotations

import contextlib
import hmac
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request as HttpRequest
from starlette.responses import Response
from starlette.routing import Route

from bedplate.core.errors import BedplateError
from bedplate.core.keys import KeyRing
from bedplate.core.trace import TraceContext
from bedplate.serving.errors import AnswerLost, EngineStopped, RequestRefused
from bedplate.serving.http import error_response, http_error, internal_error

OPEN_ROUTES = frozenset({"/health", "/ready"})
TENANT_HEADER = "x-bedplate-tenant"
Endpoint = Callable[[HttpRequest], Awaitable[Response]]


class Unauthorized(BedplateError):
    """No key, or a wrong one."""

    code = "serving.invalid_api_key"


@dataclass(frozen=True)
class Access:
    """The keys that open a server.

    A caller with `internal_key` is another process of the platform: its tenant
    header and its trace are believed.
    """

    keys: KeyRing
    internal_key: str | None = None

    def is_internal(self, request: HttpRequest) -> bool:
        """Whether the caller holds the internal key."""
        given = bearer(request)
        if self.internal_key is None or given is None:
            return False
        return hmac.compare_digest(given.encode(), self.internal_key.encode())

    def caller(self, request: HttpRequest) -> str:
        """Who calls, as text that separates prefix sharing. Raises `Unauthorized`."""
        if self.is_internal(request):
            return "tenant:" + request.headers.get(TENANT_HEADER, "")
        given = bearer(request)
        name = self.keys.match(given) if given else None
        if name is None:
            raise Unauthorized(
                "no API key was given" if given is None else "the API key is not known",
                remedy="send the header Authorization: Bearer <key>",
            )
        return "key:" + name

    def guard(self, path: str, endpoint: Endpoint) -> Endpoint:
        """`endpoint` behind the key check, its errors as OpenAI's error objects.

        Sets `request.state.caller` and `request.state.trace`; every answer carries
        `X-Request-Id`. A client's own `traceparent` is not continued.
        """

        async def guarded(request: HttpRequest) -> Response:
            given = TraceContext.parse(request.headers.get("traceparent"))
            trusted = given is not None and self.is_internal(request)
            trace = given if given is not None and trusted else TraceContext.start()
            request.state.trace = trace
            try:
                request.state.caller = "" if path in OPEN_ROUTES else self.caller(request)
                response = await endpoint(request)
            except Unauthorized as error:
                response = error_response(error, 401)
            except RequestRefused as error:
                response = error_response(error, error.status, error.param)
            except EngineStopped as error:
                response = error_response(error, 503)
            except AnswerLost as error:
                response = error_response(error, 500)
            except Exception as error:
                response = await internal_error(request, error)
            response.headers["X-Request-Id"] = trace.trace_id
            return response

        return guarded

    def application(
        self,
        table: Sequence[tuple[str, str, Endpoint]],
        on_stop: Callable[[], Awaitable[object]] | None = None,
    ) -> Starlette:
        """The ASGI application of (method, path, endpoint) rows, every one guarded.

        `on_stop` runs when the server has drained.
        """

        @contextlib.asynccontextmanager
        async def lifespan(application: Starlette) -> AsyncIterator[None]:
            yield
            if on_stop is not None:
                await on_stop()

        routes = [
            Route(path, self.guard(path, endpoint), methods=[method])
            for method, path, endpoint in table
        ]
        application = Starlette(
            routes=routes,
            lifespan=lifespan,
            exception_handlers={HTTPException: self.http_error},
        )
        # A redirect would be answered before the key check, to a host of the client's choice.
        application.router.redirect_slashes = False
        return application

    async def http_error(self, request: HttpRequest, error: Exception) -> Response:
        """For unknown routes and methods: 401 without a key, so that nothing can be probed."""
        try:
            self.caller(request)
            response = await http_error(request, error)
        except Unauthorized as refused:
            response = error_response(refused, 401)
        response.headers["X-Request-Id"] = TraceContext.start().trace_id
        return response


def bearer(request: HttpRequest) -> str | None:
    """The key in the Authorization header, if any."""
    scheme, _, key = request.headers.get("authorization", "").partition(" ")
    return key.strip() if scheme.lower() == "bearer" and key.strip() else None
