"""Columns of a DuckDB result as NumPy arrays, some rows at a time.

DuckDB gives NumPy a whole result or nothing. Its Arrow stream comes in batches; the stream's C
interface [1]_ is read here, so that a center needs no Arrow library.

References
----------
.. [1] https://arrow.apache.org/docs/format/CStreamInterface.html
"""

import ctypes
from collections.abc import Iterator
from ctypes import CFUNCTYPE, POINTER, byref, c_char_p, c_int, c_int64, c_void_p
from typing import Any

import numpy as np

from unpooled.errors import SourceError

_DTYPES = {b"g": "f8", b"i": "i4", b"L": "u8"}  # the formats of numbers that occur


class _Schema(ctypes.Structure):
    pass


class _Array(ctypes.Structure):
    pass


class _Stream(ctypes.Structure):
    pass


_Schema._fields_ = [
    ("format", c_char_p),
    ("name", c_char_p),
    ("metadata", c_void_p),
    ("flags", c_int64),
    ("n_children", c_int64),
    ("children", POINTER(POINTER(_Schema))),
    ("dictionary", c_void_p),
    ("release", CFUNCTYPE(None, POINTER(_Schema))),
    ("private_data", c_void_p),
]
_Array._fields_ = [
    ("length", c_int64),
    ("null_count", c_int64),
    ("offset", c_int64),
    ("n_buffers", c_int64),
    ("n_children", c_int64),
    ("buffers", POINTER(c_void_p)),
    ("children", POINTER(POINTER(_Array))),
    ("dictionary", c_void_p),
    ("release", CFUNCTYPE(None, POINTER(_Array))),
    ("private_data", c_void_p),
]
_Stream._fields_ = [
    ("get_schema", CFUNCTYPE(c_int, POINTER(_Stream), POINTER(_Schema))),
    ("get_next", CFUNCTYPE(c_int, POINTER(_Stream), POINTER(_Array))),
    ("get_last_error", CFUNCTYPE(c_char_p, POINTER(_Stream))),
    ("release", CFUNCTYPE(None, POINTER(_Stream))),
    ("private_data", c_void_p),
]

Columns = dict[str, np.ndarray[tuple[int, ...], np.dtype[Any]]]


def read_stream(capsule: object) -> Iterator[Columns]:
    """The columns of each batch, numbers without gaps; they are gone when the next one is read."""
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = c_void_p, [ctypes.py_object, c_char_p]
    stream = ctypes.cast(pointer(capsule, b"arrow_array_stream"), POINTER(_Stream))
    dtypes = _dtypes(stream)
    while True:
        batch = _Array()
        _check(stream, stream.contents.get_next(stream, byref(batch)))
        if not batch.release:
            return
        try:
            yield {
                name: _column(batch.children[place].contents, dtype)
                for place, (name, dtype) in enumerate(dtypes.items())
            }
        finally:
            batch.release(byref(batch))


def _dtypes(stream: Any) -> dict[str, "np.dtype[Any]"]:
    schema = _Schema()
    _check(stream, stream.contents.get_schema(stream, byref(schema)))
    try:
        children = [schema.children[place].contents for place in range(schema.n_children)]
        return {child.name.decode(): np.dtype(_DTYPES[child.format]) for child in children}
    finally:
        schema.release(byref(schema))


def _column(array: _Array, dtype: "np.dtype[Any]") -> np.ndarray[tuple[int, ...], np.dtype[Any]]:
    if array.null_count:
        raise SourceError("a column that is read as numbers must have one in every row")
    if not array.length:
        return np.empty(0, dtype)
    size = (array.offset + array.length) * dtype.itemsize
    held = (ctypes.c_char * size).from_address(array.buffers[1])
    return np.frombuffer(held, dtype)[array.offset :]


def _check(stream: Any, failed: int) -> None:
    if failed:
        reason = stream.contents.get_last_error(stream) or b"no reason is given"
        raise SourceError(f"DuckDB cannot read on: {reason.decode(errors='replace')}")
