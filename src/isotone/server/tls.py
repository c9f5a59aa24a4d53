"""TLS (--tls-cert, --tls-key): loads the certificate and its key, and replaces both while the server runs (SIGHUP)."""

from __future__ import annotations

import ssl
from os import PathLike
from typing import Any

from isotone.errors import UsageError
from isotone.output_paths import check_regular


class Certificate(ssl.SSLContext):
    """An SSL context whose certificate can be replaced: open connections keep the old one, new ones use the new one.

    `load` reads a new certificate and key. If they are broken, the old ones stay in use.
    """

    _current: ssl.SSLContext
    _files: tuple[str | PathLike[str], str | PathLike[str] | None]

    def load(self) -> None:
        """Read the files again. Raises `UsageError` if they are not a certificate and its key."""
        for file in self._files:
            if file is not None:
                check_regular(file)
        self._current = _context(*self._files)

    def wrap_bio(self, *arguments: Any, **options: Any) -> ssl.SSLObject:
        return self._current.wrap_bio(*arguments, **options)


def certificate(
    cert: str | PathLike[str] | None, key: str | PathLike[str] | None
) -> Certificate | None:
    """The certificate in `cert` with the key in `key`, by default in the same file; None without. Raises `UsageError`."""
    if cert is None:
        if key is not None:
            raise UsageError("--tls-key needs the certificate, too: give --tls-cert FILE")
        return None
    made = Certificate(ssl.PROTOCOL_TLS_SERVER)
    made._files = cert, key
    made.load()
    return made


def _context(cert: str | PathLike[str], key: str | PathLike[str] | None) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    where = str(cert) if key is None else f"{cert} and {key}"
    try:
        context.load_cert_chain(cert, key, password=_refuse_password)
    except ssl.SSLError as error:
        raise UsageError(f"{where} cannot be used for TLS: {_reason(error, key)}") from None
    except OSError as error:
        raise UsageError(f"{where} cannot be read: {error.strerror or error}") from None
    return context


def _reason(error: ssl.SSLError, key: str | PathLike[str] | None) -> str:
    if error.reason == "KEY_VALUES_MISMATCH":
        return "the key is not that of the certificate"
    if error.reason is None and key is None:
        return "it must have a certificate and its key, both in PEM; --tls-key names a key in another file"
    return error.reason or "they must be a certificate and its key, both in PEM"


def _refuse_password() -> str:
    raise UsageError(
        "the key for TLS is encrypted; give one that is not, readable by its owner alone"
    )
