"""What an SQL verifier may do: the functions it may call, and SQLite's own limits for it."""

import re
import sqlite3
from collections.abc import Mapping
from types import MappingProxyType

from wavetank.worlds.tables import VALUE_BYTES

# https://sqlite.org/lang_corefunc.html
_SCALAR = """abs char coalesce concat concat_ws format glob hex if ifnull iif instr length like
likelihood likely lower ltrim max min nullif octet_length printf quote replace round rtrim sign
substr substring trim typeof unhex unicode unistr unlikely upper"""
# https://sqlite.org/lang_aggfunc.html
_AGGREGATE = "avg count group_concat string_agg sum total median percentile percentile_cont"
# https://sqlite.org/windowfunctions.html
_WINDOW = """cume_dist dense_rank first_value lag last_value lead nth_value ntile percent_rank rank
row_number"""
# https://sqlite.org/lang_mathfunc.html
_MATHEMATICS = """acos acosh asin asinh atan atan2 atanh ceil ceiling cos cosh degrees exp floor ln
log log10 log2 mod pi pow power radians sin sinh sqrt tan tanh trunc"""
# https://sqlite.org/lang_datefunc.html
_DATES = "date datetime julianday strftime time timediff unixepoch"
# https://sqlite.org/json1.html
_JSON = """-> ->> json json_array json_array_length json_each json_error_position json_extract
json_group_array json_group_object json_insert json_object json_patch json_quote json_remove
json_replace json_set json_tree json_type json_valid"""

ALLOWED_FUNCTIONS = frozenset(
    " ".join([_SCALAR, _AGGREGATE, _WINDOW, _MATHEMATICS, _DATES, _JSON]).split()
)
"""Functions whose answer follows from their arguments alone and that reach nothing outside.

Not there, on purpose: ``load_extension``, ``fts3_tokenizer`` (reach outside), ``random``,
``randomblob``, ``current_timestamp`` and its kin (the same end state must get the same score),
``zeroblob``, ``sqlite_*``, ``changes`` (say nothing about an end state).
"""

WALL_CLOCK = re.compile(
    r"'now'|\b(?:date|time|datetime|julianday|unixepoch)\s*\(\s*\)|\bstrftime\s*\(\s*'[^']*'\s*\)",
    re.IGNORECASE,
)
"""Where a statement asks the date functions for the time of the machine, which is not the world's:
the same end state would get another score tomorrow."""

TABLE_FUNCTIONS = frozenset({"json_each", "json_tree"})
"""Table-valued functions that may stand in FROM."""

LIMITS: Mapping[int, int] = MappingProxyType(
    {
        sqlite3.SQLITE_LIMIT_ATTACHED: 0,
        sqlite3.SQLITE_LIMIT_COLUMN: 1_000,
        sqlite3.SQLITE_LIMIT_COMPOUND_SELECT: 500,
        sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 500,
        sqlite3.SQLITE_LIMIT_LENGTH: VALUE_BYTES,
        sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 1_000,
        sqlite3.SQLITE_LIMIT_SQL_LENGTH: 1_000_000,
        sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH: 1,
        sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER: 1_000,
        sqlite3.SQLITE_LIMIT_VDBE_OP: 100_000,
        sqlite3.SQLITE_LIMIT_WORKER_THREADS: 0,
    }
)
"""Limits of the connection that verifiers run on: https://sqlite.org/limits.html"""

_ACTION_NAMES = """ALTER_TABLE ANALYZE ATTACH CREATE_INDEX CREATE_TABLE CREATE_TEMP_INDEX
CREATE_TEMP_TABLE CREATE_TEMP_TRIGGER CREATE_TEMP_VIEW CREATE_TRIGGER CREATE_VIEW CREATE_VTABLE
DELETE DETACH DROP_INDEX DROP_TABLE DROP_TEMP_INDEX DROP_TEMP_TABLE DROP_TEMP_TRIGGER
DROP_TEMP_VIEW DROP_TRIGGER DROP_VIEW DROP_VTABLE FUNCTION INSERT PRAGMA READ REINDEX SAVEPOINT
TRANSACTION UPDATE"""

ACTIONS: Mapping[int, str] = MappingProxyType(
    {
        int(getattr(sqlite3, f"SQLITE_{name}")): name.replace("_", " ")
        for name in _ACTION_NAMES.split()
    }
)
"""What an authorizer is asked, in words: https://sqlite.org/c3ref/c_alter_table.html"""
