"""Parse decimal numbers in a buffer of bytes."""

import numpy as np
from numpy.typing import NDArray

from tagsmith.core.base.arrays import Bytes
from tagsmith.core.base.jit import inlined, kernel

#: The powers of ten that float64 represents exactly.
_TENS = 10.0 ** np.arange(23)
#: Digits kept of a number: more than float64 can distinguish, and as many as fit into 64 bits.
_MAX_DIGITS = 19


@inlined
def _scaled(mantissa: np.uint64, exponent: int) -> float:
    """mantissa * 10 ** exponent; correctly rounded if both are small, as they are in data."""
    value = float(mantissa)
    while exponent > 0:
        step = min(exponent, 22)
        value *= _TENS[step]
        exponent -= step
    while exponent < 0:
        step = min(-exponent, 22)
        value /= _TENS[step]
        exponent += step
    return value


@kernel
def parse_decimal(text: Bytes, start: int, stop: int, out: NDArray[np.float64], at: int) -> bool:
    """Parse text[start:stop], a decimal number with an optional fraction and exponent, into out[at].

    Returns False if it is not a number.
    """
    i = start
    negative = i < stop and text[i] == 45
    if i < stop and (text[i] == 45 or text[i] == 43):
        i += 1
    mantissa, digits, seen, exponent, point = np.uint64(0), 0, 0, 0, False
    while i < stop and (48 <= text[i] <= 57 or (text[i] == 46 and not point)):
        if text[i] == 46:
            point = True
        else:
            seen += 1
            if digits < _MAX_DIGITS:
                mantissa = mantissa * np.uint64(10) + np.uint64(text[i] - 48)
                digits += int(mantissa > 0)
                exponent -= point
            else:
                exponent += not point
        i += 1
    if seen == 0:
        return False
    if i < stop and (text[i] == 101 or text[i] == 69):
        i += 1
        negative_power = i < stop and text[i] == 45
        if i < stop and (text[i] == 45 or text[i] == 43):
            i += 1
        first, power = i, 0
        while i < stop and 48 <= text[i] <= 57:
            power = min(power * 10 + int(text[i]) - 48, 9999)
            i += 1
        if i == first:
            return False
        exponent += -power if negative_power else power
    value = 0.0
    if mantissa > 0:
        value = _scaled(mantissa, max(min(exponent, 400), -400))
    out[at] = -value if negative else value
    return i == stop
