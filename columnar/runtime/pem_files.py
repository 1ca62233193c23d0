"""Certificates, keys and authorities in PEM files, loaded into contexts of TLS.

Errors name the file, and the command's option that the file came by.  The functions block while they read.
"""

from __future__ import annotations

import ssl
from typing import NoReturn

from columnar.errors import HostError


def load_certificate(context: ssl.SSLContext, cert: str, key: str, cert_option: str, key_option: str) -> None:
    """Load a certificate and its key.  Raises HostError, which names the options, if the files are not such a pair."""

    def encrypted() -> NoReturn:
        raise HostError(f"the key in {key} ({key_option}) is encrypted; take the pass phrase off with: openssl pkey")

    try:
        context.load_cert_chain(cert, key, password=encrypted)
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            raise HostError(
                f"the key in {key} ({key_option}) is not that of the certificate in {cert} ({cert_option}); "
                "give the two files that were made together"
            ) from error
        raise HostError(
            f"{cert} ({cert_option}) and {key} ({key_option}) are no certificate and its key: "
            f"{error.reason or error}; give PEM files"
        ) from error
    except OSError as error:
        raise HostError(f"cannot read {cert} or {key}: {error.strerror}; look at {cert_option}") from error


def load_authorities(context: ssl.SSLContext, path: str, option: str) -> None:
    """Load the certificates of authorities.  Raises HostError if the file has none."""
    read_pem(path, option)
    try:
        context.load_verify_locations(cafile=path)
    except ssl.SSLError as error:
        raise HostError(f"{path} ({option}) holds no certificates: {error.reason or error}; give a PEM file") from error


def read_pem(path: str, option: str) -> str:
    """Return the text of a file.  Raises HostError, which names the option, if it cannot be read."""
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.read()
    except OSError as error:
        raise HostError(f"cannot read {path}: {error.strerror}; {option} must name a PEM file") from error
