"""Names and words: short lists of common ones, and generated new ones."""

from tagsmith.core.corpus.synthetic.stream import Stream


def split_list(text: str) -> tuple[str, ...]:
    """Split a list: at bars if there are any, otherwise at blanks."""
    entries = text.split("|") if "|" in text else text.split()
    return tuple(entry.strip() for entry in entries)


GIVEN = split_list(
    """
    John Mary Peter Anna James Laura Robert Elena David Sofia Thomas Ingrid Carlos Yuki Wei Fatima Ahmed
    Priya Lars Chiara Pierre Helen Victor Nadia Martin Olga Samuel Grace Jordan Austin Florence Sydney
    Chelsea
    """
)

#: The last ones are also places, and some of those are also given names or ordinary words.
SURNAMES = split_list(
    """
    Smith Garcia Mueller Rossi Tanaka Kim Novak Silva Andersson Dubois Ivanov Khan Patel Nguyen Chen Brown
    Taylor Wilson Jansen Kowalski Moreau Schmidt Okafor Haddad Lindqvist Baker Cook Young King Field Page
    May March Press London Lincoln Houston Austin Paris Berlin Hamilton Wellington Jordan Carlisle Durham
    Lancaster Chester York
    """
)

CITIES = split_list(
    """
    London Paris Berlin Houston Lincoln Austin Hamilton Wellington Carlisle Durham Lancaster Chester York
    Boston Cambridge Oxford Madrid Vienna Dublin Leeds Bristol Toronto Denver Portland Jordan Reading Bath
    Mobile Orange Florence Sydney Chelsea Richmond Albany Salem Geneva Athens Milan Lyon Porto
    """
)

_STARTS = split_list(
    """
    b br c ch cl d dr f fr g gr h j k kl l m n p pr r s sch sh st t tr v w z
    """
)
_VOWELS = split_list(
    """
    a e i o u a e i o ai ei ou ie au
    """
)
_MIDDLES = split_list(
    """
    b d g l ll m n nd ng r rd rn rt s ss st t th v z
    """
)

_SURNAME_ENDS = split_list(
    """
    er man sen son ov ska ski ini elli ez berg stein wald mann ward ton ley shaw
    """
)
_PLACE_ENDS = split_list(
    """
    ton ham ford bury ville burg field mouth port wick stead by er son ley berg wald
    """
)
_WORD_STARTS = split_list(
    """
    anti auto bio con de dis geo hyper inter intra macro meta micro multi neo non para poly post pre proto
    quasi re semi sub super trans un under
    """
)
_WORD_ENDS = split_list(
    """
    tion ment ity ness ance ism ing al ous ive able ology ics ation ure ant ers
    """
)


def _stem(stream: Stream, syllables: int) -> str:
    parts = [stream.pick(_STARTS)]
    for number in range(syllables):
        parts.append(stream.pick(_VOWELS))
        if number + 1 < syllables:
            parts.append(stream.pick(_MIDDLES))
    return "".join(parts) + stream.pick(("l", "n", "r", "s", "t", "m", "d", ""))


def given_name(stream: Stream) -> str:
    """Return a given name."""
    return stream.favour(GIVEN) if stream.chance(0.8) else _stem(stream, 2).capitalize()


def surname(stream: Stream) -> str:
    """Return a surname: a common one, a new one, or a place."""
    if stream.chance(0.55):
        return stream.pick(SURNAMES)
    made = (_stem(stream, 1) + stream.pick(_SURNAME_ENDS)).capitalize()
    if stream.chance(0.06):
        return f"{made}-{stream.pick(SURNAMES)}"
    return stream.pick(("Mc", "O'", "Van", "De")) + made if stream.chance(0.05) else made


def city(stream: Stream) -> str:
    """Return a town. New towns are similar to new surnames."""
    if stream.chance(0.6):
        return stream.favour(CITIES)
    return (_stem(stream, 1) + stream.pick(_PLACE_ENDS)).capitalize()


def new_word(stream: Stream) -> str:
    """Return a new lower-case word."""
    start = stream.pick(_WORD_STARTS) if stream.chance(0.4) else ""
    return start + _stem(stream, 1) + stream.pick(_WORD_ENDS)
