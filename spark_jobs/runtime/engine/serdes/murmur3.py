"""Murmur3 with 128 bits: how foreign-key joins hash left values (`org.apache.kafka.streams.…Murmur3`)."""

import struct

_SEED = 104729
_MASK = 0xFFFF_FFFF_FFFF_FFFF
_C1 = 0x87C3_7B91_1142_53D5
_C2 = 0x4CF5_AD43_2745_937F
_BLOCK = struct.Struct("<QQ")
_RESULT = struct.Struct(">QQ")


def murmur3_128(data: bytes) -> bytes:
    """The 16 bytes of the hash, as they stand in messages (two longs, big endian)."""
    length = len(data)
    h1 = h2 = _SEED
    whole = length & ~15
    for offset in range(0, whole, 16):
        k1, k2 = _BLOCK.unpack_from(data, offset)
        h1 ^= _mixed(k1, _C1, 31, _C2)
        h1 = ((_rotated(h1, 27) + h2) * 5 + 0x52DC_E729) & _MASK
        h2 ^= _mixed(k2, _C2, 33, _C1)
        h2 = ((_rotated(h2, 31) + h1) * 5 + 0x3849_5AB5) & _MASK
    if whole < length:
        k1, k2 = _BLOCK.unpack(data[whole:].ljust(16, b"\x00"))
        h2 ^= _mixed(k2, _C2, 33, _C1)
        h1 ^= _mixed(k1, _C1, 31, _C2)
    h1 ^= length
    h2 ^= length
    h1 = (h1 + h2) & _MASK
    h2 = (h2 + h1) & _MASK
    h1, h2 = _finished(h1), _finished(h2)
    h1 = (h1 + h2) & _MASK
    return _RESULT.pack(h1, (h2 + h1) & _MASK)


def _rotated(value: int, by: int) -> int:
    return ((value << by) | (value >> (64 - by))) & _MASK


def _mixed(block: int, first: int, by: int, second: int) -> int:
    return (_rotated((block * first) & _MASK, by) * second) & _MASK


def _finished(value: int) -> int:
    value ^= value >> 33
    value = (value * 0xFF51_AFD7_ED55_8CCD) & _MASK
    value ^= value >> 33
    value = (value * 0xC4CE_B9FE_1A85_EC53) & _MASK
    return value ^ (value >> 33)
