"""The CRC-32 of bytes, by zlib-ng where there is a wheel of it: it takes a third of the time that zlib takes, or less."""

from __future__ import annotations

try:
    from zlib_ng.zlib_ng import crc32
except ImportError:
    from zlib import crc32

__all__ = ["crc32"]
