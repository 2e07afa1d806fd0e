"""A release that doesn't exist: what the newest one's interpreter says, with its opcodes changed in every way.

Opcodes have other numbers, some have other cache sizes, one is renamed, one is split in two, two are merged into one.
"""

from base64 import b64encode

from models.dumps import code_facts, read

from bytecode_models.image import dump
from bytecode_models.tables import Protected, write_exception_table, write_locations

RENAMED = {"UNARY_INVERT": "UNARY_COMPLEMENT"}
SPLIT = {"IS_OP": ("IS", "IS_NOT")}  # by the operand, which is gone
MERGED = {"POP_JUMP_IF_NONE": 0, "POP_JUMP_IF_NOT_NONE": 1}  # the lowest bit of the operand
MERGED_NAME = "POP_JUMP_IF_NONENESS"
CACHES = {"LOAD_ATTR": 7, "COMPARE_OP": 2, "GET_ITER": 0, "RESUME": 3}
BACKWARD = ("JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT", "END_ASYNC_FOR")


class Change:
    """From the opcodes of one release to those of another. Without `faked` nothing changes."""

    def __init__(self, facts, faked=True):
        self.faked = faked
        self.facts = self.opcodes(facts) if faked else facts
        self.numbers, self.caches = self.facts["numbers"], self.facts["caches"]

    def names(self, name):
        """What an opcode is called: two names if it is split."""
        if not self.faked:
            return (name,)
        if name in MERGED:
            return (MERGED_NAME,)
        return SPLIT.get(name) or (RENAMED.get(name, name),)

    def opcodes(self, facts):
        """The tables of the changed release."""
        names = sorted({new for name in facts["numbers"] for new in self.names(name)} - {"CACHE"}, reverse=True)
        caches = {new: units for name, units in facts["caches"].items() for new in self.names(name)} | CACHES
        flags = {flag: {new for name in names for new in self.names(name)} for flag, names in facts["flags"].items()}
        flags["hasarg"] -= {*SPLIT["IS_OP"]}
        effects = {new: rows for name, rows in facts["effects"].items() for new in self.names(name)}
        return facts | {
            "numbers": {"CACHE": 0} | {name: number for number, name in enumerate(names, 1)},
            "caches": {name: units for name, units in sorted(caches.items()) if units},
            "flags": {flag: sorted(names) for flag, names in flags.items()},
            "effects": effects,
        }

    def instruction(self, name, arg):
        """(name, operand) of an instruction that doesn't jump."""
        if self.faked and name in SPLIT:
            return SPLIT[name][arg], 0
        return self.names(name)[0], arg

    def operand(self, name, distance):
        """The operand of a jump."""
        return distance << 1 | MERGED[name] if self.faked and name in MERGED else distance

    def module(self, module):
        """Image and facts of a module's code objects, compiled by the changed release."""
        facts = iter(module["facts"])
        made = []
        image = self.image(module["image"], facts, made)
        return {"image": image, "facts": made}

    def image(self, image, facts, made):
        own, listing = next(facts), {}
        made.append(listing)
        code = Assembly(self, own)
        listing |= code.facts()
        tables = {
            "co_code": bytes(code.data),
            "co_exceptiontable": write_exception_table(code.handlers()),
            "co_linetable": write_locations(image["co_firstlineno"], code.locations()),
        }
        consts = [
            {"code": self.image(const["code"], facts, made)} if isinstance(const, dict) and "code" in const else const
            for const in image["co_consts"]
        ]
        return image | {name: b64encode(table).decode() for name, table in tables.items()} | {"co_consts": consts}


class Assembly:
    """A code object whose instructions are put together anew, of other sizes."""

    def __init__(self, change, facts):
        self.change = change
        self.old = facts
        self.raw, self.begins, begin = [], [], None
        for raw in facts["raw"]:
            begin = raw[0] if begin is None else begin
            if raw[1] != "EXTENDED_ARG":
                self.raw.append(raw)
                self.begins.append(begin)
                begin = None
        self.end = 2 * sum(units for units, _ in facts["positions"])
        self.args = [0] * len(self.raw)
        while self.layout():
            pass
        self.data = b"".join(map(self.encoded, range(len(self.raw))))

    def layout(self):
        """Place the instructions where their sizes put them, and count jumps anew. Did an operand change?"""
        self.at, offset = {}, 0
        ends = []
        for index, begin in enumerate(self.begins):
            self.at[begin] = offset
            offset += len(self.encoded(index))
            ends.append(offset)
        self.at[self.end] = offset
        before = list(self.args)
        for index, (_, name, arg, target, *_) in enumerate(self.raw):
            if target is None:
                self.args[index] = self.change.instruction(name, arg)[1]
            else:
                distance = (self.at[target] - ends[index]) // 2
                self.args[index] = self.change.operand(name, -distance if name in BACKWARD else distance)
        return before != self.args

    def encoded(self, index):
        """Bytes of one instruction."""
        name = self.change.instruction(self.raw[index][1], self.raw[index][2])[0]
        arg, numbers = self.args[index], self.change.numbers
        high = [b for shift in (24, 16, 8) if arg >> shift for b in (numbers["EXTENDED_ARG"], arg >> shift & 255)]
        return bytes([*high, numbers[name], arg & 255]) + bytes(2 * self.change.caches.get(name, 0))

    def places(self):
        """Positions of each instruction, and its code units."""
        old = [tuple(place) for units, place in self.old["positions"] for _ in range(units)]
        return [(len(self.encoded(index)) // 2, old[begin // 2]) for index, begin in enumerate(self.begins)]

    def locations(self):
        """The same, with neighbours at one place taken together, as the compiler does."""
        runs = []
        for units, place in self.places():
            if runs and runs[-1][1] == place:
                runs[-1] = runs[-1][0] + units, place
            else:
                runs.append((units, place))
        return runs

    def handlers(self):
        """The exception table's entries."""
        return [
            Protected(self.at[start], self.at[end], self.at[target], depth, lasti)
            for start, end, target, depth, lasti in self.old["handlers"]
        ]

    def facts(self):
        """What `dis` would say of it."""
        listed = []
        for index, (_, old, arg, target, *effects) in enumerate(self.raw):
            name = self.change.instruction(old, arg)[0]
            data = self.encoded(index)
            offset = self.at[self.begins[index]]
            value = 0
            while data[0] == self.change.numbers["EXTENDED_ARG"]:
                value = value << 8 | data[1]
                listed.append([offset, "EXTENDED_ARG", value, None, 0, 0])
                offset, data = offset + 2, data[2:]
            to = None if target is None else self.at[target]
            listed.append([offset, name, self.args[index], to, *effects])
        runs = [[units, list(place)] for units, place in self.places()]
        return self.old | {"raw": listed, "positions": runs, "handlers": [list(entry) for entry in self.handlers()]}


def fake_dumps(release):
    """(opcodes, codes) of the changed release."""
    change = Change(read("opcodes", release))
    return change.facts, [change.module(module) for module in read("codes", release)]


def reassembled(code, opcodes):
    """The image of a code object of the running release, put together by this file without any change."""
    facts = iter([code_facts(code)])
    image = dump(code) | {"co_consts": []}
    return image, Change(opcodes, faked=False).image(image, facts, [])
