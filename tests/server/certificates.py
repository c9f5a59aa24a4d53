"""Certificates for localhost, made by openssl."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

needs_openssl = pytest.mark.skipif(shutil.which("openssl") is None, reason="there is no openssl")


def make_certificate(folder: Path, name: str, *, password: str = "") -> tuple[Path, Path]:
    """A self-signed certificate and its key; the common name is `name`."""
    folder.mkdir(exist_ok=True)
    cert, key = folder / f"{name}.pem", folder / f"{name}.key"
    made = ["-keyout", str(key), "-out", str(cert), "-days", "2", "-subj", f"/CN={name}"]
    secret = ["-passout", f"pass:{password}"] if password else ["-nodes"]
    names = ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    subprocess.run([*command, *made, *secret, *names], check=True, capture_output=True)
    return cert, key
