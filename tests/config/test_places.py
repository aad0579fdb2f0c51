"""Lines of keys in TOML."""

import tomllib

from hypothesis import given
from hypothesis import strategies as st

from dsp.config.places import key_lines, line_of

DOCUMENT = '''\
title = "a = b" # c = d
a.b = 1

[ table ] # [not.a.table]
list = [ # x = 1
  "]", # y = 2
  { z = 3 },
]
"quoted = \\"key\\"" = 1
'it''s'.inner = 2
text = """
[fake]
fake = 1 \\"""
"""""
literal = \'\'\'
[fake]\'\'\'
after = 1
[table."sub.table"]
key = 1

[[many]]
name = 1
[[many]]
name = 2
[last]'''


def test_lines() -> None:
    document = DOCUMENT.replace("'it''s'", "'it s'")
    tomllib.loads(document)
    assert key_lines(document) == {
        ("title",): 1,
        ("a",): 2,
        ("a", "b"): 2,
        ("table",): 4,
        ("table", "list"): 5,
        ("table", 'quoted = "key"'): 9,
        ("table", "it s"): 10,
        ("table", "it s", "inner"): 10,
        ("table", "text"): 11,
        ("table", "literal"): 15,
        ("table", "after"): 17,
        ("table", "sub.table"): 18,
        ("table", "sub.table", "key"): 19,
        ("many",): 21,
        ("many", "name"): 22,
        ("last",): 25,
    }


def test_nearest_line() -> None:
    lines = key_lines("\n[a]\nb = { c = 1 }\n")
    assert line_of(("a", "b", "c"), lines) == 3
    assert line_of(("a", "x"), lines) == 2
    assert line_of(("x",), lines) is None


def quoted(text: str) -> str:
    return '"' + "".join(f"\\U{ord(character):08x}" for character in text) + '"'


KEYS = st.one_of(
    st.from_regex(r"[A-Za-z0-9_-]{1,8}", fullmatch=True),
    st.text(st.characters(codec="utf-8"), max_size=8).map(quoted),
)
VALUES = st.sampled_from(
    ["1", '"#"', "[\n1, # ]\n2\n]", '"""\n[x]\n\\""""', "'''\nx = 1\n'''", "{ a = 1, b.c = '}' }"]
)


@given(st.lists(st.tuples(KEYS, VALUES), max_size=8), st.sampled_from(["", "\n", " # c\n\n"]))
def test_every_key_is_found_on_its_line(entries: list[tuple[str, str]], end: str) -> None:
    document = "[t]\n"
    expected: dict[tuple[str, ...], int] = {("t",): 1}
    for key, value in entries:
        name = next(iter(tomllib.loads(f"{key} = 0")))
        if ("t", name) in expected:
            continue
        expected["t", name] = document.count("\n") + 1
        document += f"{key} = {value}{end or chr(10)}"
    tomllib.loads(document)
    assert key_lines(document) == expected
