"""Parameters of links, as Python has them and as the lab reads them."""

from __future__ import annotations

import datetime
from typing import Dict, Union

#: Text as in a lab file; a number (see Link.set); a timedelta for a time.
Value = Union[str, bool, int, float, datetime.timedelta]

_TIMES = {"delay", "jitter", "reorder-by"}
_SHARES = {"loss", "burst-loss", "duplicate", "reorder"}


def parameters(values: Dict[str, Value]) -> Dict[str, str]:
    """Write parameters as a lab file does; ``burst_loss`` is ``burst-loss`` there."""
    return {name.replace("_", "-"): _text(name.replace("_", "-"), value) for name, value in values.items()}


def _text(name: str, value: Value) -> str:
    if isinstance(value, datetime.timedelta):
        value = value.total_seconds()
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value).lower()
    if name in _TIMES:
        return f"{round(value * 1e9)}ns"
    if name in _SHARES:
        return f"{value * 100:.12g}%"
    if name == "rate":
        return f"{value:.0f}bit" if value else "none"
    return f"{value:.0f}" if float(value).is_integer() else repr(value)
