#!/usr/bin/env python3
"""Second opinions on HPACK: decodes sequences of field blocks with libnghttp2 and, where it is installed, python hpack.

Reads lines of JSON, each {"limit": BYTES, "blocks": [HEX, …]}, and writes one line for each: for each decoder a list with
an item for each block, the fields as [[NAME, VALUE], …] in hexadecimal, or null where decoding fails and ends.
With --list it only names the decoders that are there.
"""

import ctypes
import json
import sys

try:
    nghttp2 = ctypes.CDLL("libnghttp2.so.14")
except OSError:
    nghttp2 = None
try:
    import hpack
except ImportError:
    hpack = None


class Field(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.POINTER(ctypes.c_uint8)), ("value", ctypes.POINTER(ctypes.c_uint8)),
        ("name_length", ctypes.c_size_t), ("value_length", ctypes.c_size_t), ("flags", ctypes.c_uint8),
    ]  # fmt: skip


def by_nghttp2(limit, blocks):
    inflater = ctypes.c_void_p()
    assert nghttp2.nghttp2_hd_inflate_new(ctypes.byref(inflater)) == 0
    inflate = nghttp2.nghttp2_hd_inflate_hd2
    inflate.restype = ctypes.c_ssize_t
    if limit != 4096:
        nghttp2.nghttp2_hd_inflate_change_table_size(inflater, ctypes.c_size_t(limit))
    result = []
    for block in blocks:
        memory = (ctypes.c_uint8 * max(1, len(block))).from_buffer_copy(block or b"\0")
        offset, fields, flags, field = 0, [], ctypes.c_int(0), Field()
        while True:
            flags.value = 0
            rest = ctypes.cast(ctypes.byref(memory, offset), ctypes.POINTER(ctypes.c_uint8))
            count = inflate(inflater, ctypes.byref(field), ctypes.byref(flags), rest, ctypes.c_size_t(len(block) - offset), 1)
            if count < 0:
                result.append(None)
                break
            offset += count
            if flags.value & 2:
                fields.append([ctypes.string_at(field.name, field.name_length).hex(), ctypes.string_at(field.value, field.value_length).hex()])
            if flags.value & 1:
                nghttp2.nghttp2_hd_inflate_end_headers(inflater)
                result.append(fields)
                break
        if result[-1] is None:
            break
    nghttp2.nghttp2_hd_inflate_del(inflater)
    return result


def by_hpack(limit, blocks):
    decoder = hpack.Decoder(max_header_list_size=1 << 20)
    decoder.max_allowed_table_size = limit
    result = []
    for block in blocks:
        try:
            result.append([[bytes(name).hex(), bytes(value).hex()] for name, value in decoder.decode(block, raw=True)])
        except Exception:
            result.append(None)
            break
    return result


DECODERS = {name: decode for name, there, decode in [("nghttp2", nghttp2, by_nghttp2), ("hpack", hpack, by_hpack)] if there}

if "--list" in sys.argv:
    print(" ".join(DECODERS))
else:
    for line in sys.stdin:
        case = json.loads(line)
        blocks = [bytes.fromhex(block) for block in case["blocks"]]
        print(json.dumps({name: decode(case["limit"], blocks) for name, decode in DECODERS.items()}))
