"""Sample texts by the name of a field: people, places, goods, sentences; by Faker instead, if that is asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from isotone.design.chance import Chance
from isotone.errors import UsageError

TextMaker = Callable[[Chance], str]


def _words_in(text: str) -> list[str]:
    return text.split()


_FIRST: Final = _words_in(
    "Ann Bo Cem Dana Eve Finn Gina Hugo Ida Jon Kira Leo Mia Noor Otto Pia Quinn Rosa Sami Tess Uma Vera Wim Yara "
    "Zoe"
)
_LAST: Final = _words_in(
    "Adler Brook Castro Dietz Evans Fischer Garcia Hansen Ito Jansen Kowalski Lee Moreau Novak Okafor Patel Quist "
    "Ray Silva Tanaka Usman Vogel Wong Yilmaz Zhou"
)
_STREETS: Final = _words_in("Mill Station Garden Church Market Lake Forest Hill Bridge School")
_CITIES: Final = _words_in(
    "Berlin Bergen Boston Dublin Graz Kyoto Lagos Lima Lisbon Lyon Malmö Nairobi Oslo Porto Quito Riga Toronto "
    "Utrecht Vienna Zürich"
)
_COUNTRIES: Final = _words_in("AT BR CA CH DE FR GB IE IN JP KE NG NL NO PE PL PT SE US")
_GOODS: Final = _words_in(
    "lamp chair desk kettle bicycle jacket notebook camera tent guitar blanket mug shelf"
)
_KINDS: Final = _words_in("small large red blue green wooden light folding warm round")
_WORDS: Final = _words_in(
    "a and the with for on new old first last order item team report plan light water road day night hand world "
    "song letter number page question answer change start end part place time week year"
)
_CURRENCIES: Final = ("EUR", "USD", "GBP", "CHF", "JPY")


def _name(chance: Chance) -> str:
    return f"{chance.pick(_FIRST)} {chance.pick(_LAST)}"


def _mail(chance: Chance) -> str:
    return f"{chance.pick(_FIRST)}.{chance.pick(_LAST)}@example.com".lower()


def _street(chance: Chance) -> str:
    return f"{chance.between(1, 120)} {chance.pick(_STREETS)} Street"


def _product(chance: Chance) -> str:
    return f"{chance.pick(_KINDS)} {chance.pick(_GOODS)}"


def _sentence(chance: Chance) -> str:
    words = [chance.pick(_WORDS) for _ in range(chance.between(5, 12))]
    return " ".join(words).capitalize() + "."


def _words(chance: Chance) -> str:
    return " ".join(chance.pick(_WORDS) for _ in range(chance.between(2, 4)))


def _phone(chance: Chance) -> str:
    return f"+1 555 {chance.between(100, 999)} {chance.between(1000, 9999)}"


# The first word that is in the name of a field decides, with Faker's method for the same.
_BY_NAME: Final[Mapping[str, tuple[TextMaker, str]]] = {
    "mail": (_mail, "email"),
    "phone": (_phone, "phone_number"),
    "first_name": (lambda chance: chance.pick(_FIRST), "first_name"),
    "last_name": (lambda chance: chance.pick(_LAST), "last_name"),
    "product": (_product, "word"),
    "city": (lambda chance: chance.pick(_CITIES), "city"),
    "country": (lambda chance: chance.pick(_COUNTRIES), "country_code"),
    "currency": (lambda chance: chance.pick(_CURRENCIES), "currency_code"),
    "street": (_street, "street_address"),
    "address": (lambda chance: f"{_street(chance)}, {chance.pick(_CITIES)}", "address"),
    "zip": (lambda chance: str(chance.between(10_000, 99_999)), "postcode"),
    "postcode": (lambda chance: str(chance.between(10_000, 99_999)), "postcode"),
    "url": (lambda chance: f"https://example.com/{chance.pick(_WORDS)}", "url"),
    "user": (lambda chance: chance.pick(_FIRST).lower(), "user_name"),
    "name": (_name, "name"),
    "author": (_name, "name"),
    "title": (lambda chance: _words(chance).capitalize(), "sentence"),
    "text": (_sentence, "sentence"),
    "body": (_sentence, "paragraph"),
    "content": (_sentence, "paragraph"),
    "description": (_sentence, "sentence"),
    "note": (_sentence, "sentence"),
    "comment": (_sentence, "sentence"),
    "message": (_sentence, "sentence"),
}


class SampleTexts:
    """Makes texts for fields; `locale` is one of Faker's, such as `de_DE`, or None for the texts of this module."""

    def __init__(self, locale: str | None = None) -> None:
        self._faker = None if locale is None else _faker_of(locale)

    def maker(self, field: str) -> TextMaker:
        """The function that makes texts for a field with this name."""
        own, name = next(
            (made for part, made in _BY_NAME.items() if part in field.lower()), (_words, "word")
        )
        if self._faker is None:
            return own
        faker, method = self._faker, getattr(self._faker, name)

        def fake(chance: Chance) -> str:
            faker.seed_instance(chance.bits())
            return str(method())

        return fake


def _faker_of(locale: str) -> Any:
    try:
        from faker import Faker
    except ImportError:
        raise UsageError(
            "names by Faker need the package: pip install faker; without the option, Isotone has names of its own"
        ) from None
    try:
        return Faker(locale)
    except AttributeError:  # what Faker raises for an unknown locale
        raise UsageError(f"Faker has no locale {locale!r}; give one such as en_US") from None
