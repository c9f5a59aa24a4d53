"""Random PartiQL statements about the table `Music` of the corpus; most are right, some wrong in one place."""

from __future__ import annotations

from hypothesis import strategies as st

NAMES = ("t", "h", "g", "b", "n", "l", "ss", "ns", "bin", "nope", '"t"')
PATHS = (*NAMES, "m", "m.p", "m['p']", "m.q[0]", "m.q[1]", "l[0]", "l[1]")
KEYS = ("a", "s")

_one_line = " ".join
names = st.sampled_from(PATHS)
any_names = st.sampled_from((*PATHS, *KEYS))
numbers = st.sampled_from(["0", "1", "2", "-1", "1.5", "10", "9", "1e1", "+2"])
texts = st.sampled_from(["'x'", "'y'", "'a'", "'x-title-1'", "''", "'it''s'"])
words = st.sampled_from(["TRUE", "false", "null"])
bags = st.one_of(
    st.lists(st.sampled_from(["'a'", "'b'", "'c'"]), min_size=1, unique=True),
    st.lists(st.sampled_from("123"), min_size=1, unique=True),
).map(lambda members: f"<<{', '.join(members)}>>")
literals = st.recursive(
    st.one_of(numbers, texts, words, bags),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda members: f"[{', '.join(members)}]"),
        st.dictionaries(st.sampled_from("pqz"), inner, max_size=2).map(
            lambda members: "{" + ", ".join(f"'{k}': {v}" for k, v in members.items()) + "}"
        ),
    ),
    max_leaves=4,
)
lists = st.lists(literals, min_size=1, max_size=3).map(", ".join)
operands = st.one_of(any_names, literals, names.map(lambda name: f"size({name})"))
negation = st.sampled_from(["", "NOT "])
comparators = st.sampled_from(["=", "<>", "!=", "<", "<=", ">", ">="])
types = st.sampled_from(
    ["MISSING", "NULL", "STRING", "NUMERIC", "BOOLEAN", "LIST", "STRUCT", "BLOB"]
)
predicates = st.one_of(
    st.tuples(any_names, comparators, literals).map(_one_line),
    st.tuples(operands, comparators, operands).map(_one_line),
    st.builds("{} {}BETWEEN {} AND {}".format, names, negation, literals, literals),
    st.builds("{} {}IN ({})".format, names, negation, lists),
    st.builds("{} {}IN [{}]".format, names, negation, lists),
    st.builds("{} IS {}{}".format, names, negation, types),
    st.builds("{}({}, {})".format, st.sampled_from(["begins_with", "CONTAINS"]), names, literals),
    st.builds(
        "attribute_type({}, '{}')".format, names, st.sampled_from(["S", "N", "SS", "L", "BOOL"])
    ),
    st.builds(
        "{}({}){}".format,
        st.sampled_from(["attribute_exists", "attribute_not_exists"]),
        names,
        st.sampled_from(["", " = true", " <> FALSE"]),
    ),
)
conditions = st.recursive(
    predicates,
    lambda inner: st.one_of(
        st.builds("({} {} {})".format, inner, st.sampled_from(["AND", "OR"]), inner),
        st.builds("NOT {}".format, inner),
    ),
    max_leaves=4,
)
partitions = st.sampled_from(["a = 'x'", "a = 'nope'", "a IN ['z', 'x']", "'y' = a"])
ranges = st.builds("s {} {}".format, comparators, st.sampled_from("0123"))
wheres = st.one_of(
    st.just(""),
    conditions.map("WHERE {}".format),
    partitions.map("WHERE {}".format),
    st.builds("WHERE {} AND {}".format, partitions, ranges),
    st.builds("WHERE {} AND {} AND {}".format, partitions, ranges, conditions),
)
columns = st.sampled_from(["*", "t", "a, s", "m.p", "m.q[0], t", "l[0], l[1]", "nope", "h, m"])
selects = st.builds(
    "SELECT {} FROM {} {}".format,
    columns,
    st.sampled_from(["Music", '"Music"', "Music.gsi"]),
    wheres,
)
items = st.builds("a = '{}' AND s = {}".format, st.sampled_from("xyz"), st.sampled_from("0123"))
item_wheres = st.one_of(items, st.builds("{} AND {}".format, items, conditions))
sums = st.builds(
    "{} {} {}".format,
    st.sampled_from(["s", "m.p", "nope", "t", "1"]),
    st.sampled_from("+-"),
    st.sampled_from(["1", "h", "2.5"]),
)
values = st.one_of(
    literals,
    sums,
    any_names,
    st.builds("if_not_exists({}, {})".format, names, literals),
    st.builds(
        "list_append({}, {})".format,
        st.sampled_from(["l", "nope", "[1]"]),
        st.sampled_from(["l", "[2]"]),
    ),
)
set_actions = st.builds(
    lambda name, function, bag: f"SET {name} = {function}({name}, {bag})",
    st.sampled_from(["ss", "ns", "fresh"]),
    st.sampled_from(["set_add", "SET_DELETE"]),
    bags,
)
targets = st.sampled_from(["t", "c", "d", "m.p", "m.w", "l[0]", "l[9]", "m.q[1]", "nope.x"])
actions = st.one_of(
    st.builds("SET {} = {}".format, targets, values),
    targets.map("REMOVE {}".format),
    set_actions,
)
returning = st.sampled_from(["", "RETURNING ALL OLD *", "RETURNING ALL NEW *"])
updates = st.builds(
    str.format,
    st.sampled_from(["UPDATE Music {0} WHERE {1} {2}", "FROM Music WHERE {1} {0} {2}"]),
    st.lists(actions, min_size=1, max_size=3).map(_one_line),
    item_wheres,
    returning,
)
inserts = st.builds(
    "INSERT INTO Music VALUE {{'a': '{}', 's': {}, 't': {}, 'u': {}}}".format,
    st.sampled_from("xn"),
    st.sampled_from("0159"),
    literals,
    literals,
)
deletes = st.builds(
    "DELETE FROM Music WHERE {} {}".format,
    item_wheres,
    st.sampled_from(["", "RETURNING ALL OLD *"]),
)
writes = st.one_of(updates, inserts, deletes)
