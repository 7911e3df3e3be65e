"""Encryption of everything that a person wrote or a model said, with keys that can be changed.

``MEMORY_ENCRYPTION_KEY`` holds one key or several, separated by commas. The first one seals, all
of them unseal: to change keys, put a new one in front. To drop the old one, copy everything into
a fresh store, sealed anew: ``python -m memory_core migrate --to URL``. Keys are Fernet keys of
the ``cryptography`` package (AES-128 in CBC mode with an HMAC, so changed bytes are noticed);
:func:`new_key` makes one.

Ids, times, token counts and roles of long-term records are not sealed: stores sort and find by
them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Self

from memory_core.errors import InvalidInput, StoreError

if TYPE_CHECKING:
    from cryptography.fernet import MultiFernet

SETTING = "MEMORY_ENCRYPTION_KEY"


class Sealed:
    """A :class:`~memory_core.stores.encoding.Cipher` with a list of keys."""

    def __init__(self, fernet: MultiFernet) -> None:
        self._fernet = fernet

    @classmethod
    def of(cls, keys: Sequence[str]) -> Self:
        """Return the cipher of some keys, the newest first.

        Raises :class:`InvalidInput` for what is no key; the text of a key is never shown.
        """
        try:
            from cryptography.fernet import Fernet, MultiFernet
        except ImportError as exc:
            raise InvalidInput(
                f"{SETTING} is set, and the package that encrypts is not installed.",
                next_step="Install cryptography, see requirements.txt.",
            ) from exc
        fernets = []
        for place, key in enumerate(keys, 1):
            try:
                fernets.append(Fernet(key))
            except ValueError:
                raise InvalidInput(
                    f"Key {place} in {SETTING} is none: 32 bytes in URL-safe base64 are.",
                    next_step="Make one with: python -m memory_core new-key",
                ) from None  # the cause would show the key
        if not fernets:
            raise InvalidInput(f"{SETTING} holds no key.")
        return cls(MultiFernet(fernets))

    def seal(self, text: str) -> str:
        """Return the text so that only holders of the key can read it."""
        return self._fernet.encrypt(text.encode()).decode()

    def unseal(self, sealed: str) -> str:
        """Return what :meth:`seal` got."""
        from cryptography.fernet import InvalidToken

        try:
            return self._fernet.decrypt(sealed.encode()).decode()
        except InvalidToken as exc:
            raise StoreError(
                "The store is encrypted with another key, or what it holds was changed.",
                next_step=f"Add the key it was written with to {SETTING}.",
            ) from exc


def cipher_from(setting: str | None) -> Sealed | None:
    """Return the cipher that the value of ``MEMORY_ENCRYPTION_KEY`` asks for, if any."""
    keys = [key.strip() for key in (setting or "").split(",") if key.strip()]
    return Sealed.of(keys) if keys else None


def new_key() -> str:
    """Return a new random key."""
    from cryptography.fernet import Fernet

    return Fernet.generate_key().decode()
