"""What a cubin says of its kernels: registers and local memory, read from the ELF sections that ptxas writes."""

from __future__ import annotations

import struct

EIATTR_FRAME_SIZE = 0x11
"""The attribute of .nv.info that holds a function's stack frame, in bytes: local memory, which spills need."""
EIATTR_REGISTERS = 0x2F
"""The attribute that holds how many registers a thread uses."""


def _sections(data: bytes) -> list[tuple[str, int, int, int]]:
    """Name, offset, size and `sh_info` of each section of a 64-bit ELF."""
    (offset,) = struct.unpack_from("<Q", data, 0x28)
    size, count, names_at = struct.unpack_from("<HHH", data, 0x3A)
    headers = [struct.unpack_from("<IIQQQQIIQQ", data, offset + size * number) for number in range(count)]
    names = headers[names_at][4]
    found = []
    for header in headers:
        start = names + header[0]
        found.append((data[start : data.index(b"\0", start)].decode(), header[4], header[5], header[7]))
    return found


def cubin_resources(data: bytes, kernel: str) -> dict[str, int]:
    """`registers` a thread, and `spills`: the bytes of its stack frame; kernels of this package have no other use
    for one."""
    found = {EIATTR_FRAME_SIZE: 0, EIATTR_REGISTERS: 0}
    for name, offset, size, info in _sections(data):
        if name == f".text.{kernel}":
            found[EIATTR_REGISTERS] = max(found[EIATTR_REGISTERS], info >> 24)
        elif name == ".nv.info":
            for attribute, value in _attributes(data[offset : offset + size]):
                if attribute in found:
                    found[attribute] = max(found[attribute], value)
    return {"registers": found[EIATTR_REGISTERS], "spills": found[EIATTR_FRAME_SIZE]}


def _attributes(content: bytes) -> list[tuple[int, int]]:
    """The records of a .nv.info section that hold a number for a function: its attribute and the number.

    A record is format, attribute and size, and for format 4 a payload: the function's symbol and the number.
    """
    position, found = 0, []
    while position + 4 <= len(content):
        form, attribute, size = struct.unpack_from("<BBH", content, position)
        position += 4
        if form == 4:
            if size >= 8:
                found.append((attribute, struct.unpack_from("<I", content, position + 4)[0]))
            position += size
    return found
