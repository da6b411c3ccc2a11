import hashlib

import pytest

from bedplate.core import keys


def test_a_made_key_is_stored_as_its_digest() -> None:
    """256 random bits need no slow hash; the key itself is not in the text."""
    key = keys.make()
    stored = keys.hash_key(key)
    assert stored == "sha256$" + hashlib.sha256(key.encode()).hexdigest()
    assert key not in stored


def test_a_chosen_key_is_stored_slowly_and_salted() -> None:
    """Two people with the same weak key have different stored texts."""
    first, second = keys.hash_key("hunter2"), keys.hash_key("hunter2")
    assert first.startswith("scrypt$")
    assert first != second
    assert keys.verify("hunter2", first)
    assert keys.verify("hunter2", second)


@pytest.mark.parametrize("key", [keys.make(), "hunter2", "", "ключ"])
def test_only_the_key_itself_verifies(key: str) -> None:
    """Any other text is refused, also for keys that are not ASCII."""
    stored = keys.hash_key(key)
    assert keys.verify(key, stored)
    assert not keys.verify(key + "x", stored)


@pytest.mark.parametrize("stored", ["", "sha256$", "scrypt$zz$00", "scrypt$", "md5$00"])
def test_damaged_stored_text_lets_nobody_in(stored: str) -> None:
    """A broken key file closes the door and does not crash it."""
    assert not keys.verify("", stored)


def test_a_ring_names_the_key_that_matched() -> None:
    """Strong and weak keys live side by side; strangers get None."""
    strong = keys.make()
    ring = keys.KeyRing({"made": keys.hash_key(strong), "chosen": keys.hash_key("hunter2")})
    assert [ring.match(key) for key in (strong, "hunter2", "no", keys.make())] == [
        "made",
        "chosen",
        None,
        None,
    ]


def test_a_weak_key_pays_scrypt_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second request with the same key is answered from memory."""
    ring = keys.KeyRing({"chosen": keys.hash_key("hunter2")})
    assert ring.match("hunter2") == "chosen"

    def refuse(*_: object, **__: object) -> bytes:
        raise AssertionError("scrypt ran again")

    monkeypatch.setattr(hashlib, "scrypt", refuse)
    assert ring.match("hunter2") == "chosen"
