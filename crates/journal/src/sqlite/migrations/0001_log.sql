-- The log. Streams are named once; a head spares every append a search.
CREATE TABLE stream (
    id         INTEGER PRIMARY KEY,
    name       TEXT    NOT NULL UNIQUE,
    stream_seq INTEGER NOT NULL,
    hash       BLOB    NOT NULL
) STRICT;

-- `payload` is last, so that reading a hash never touches overflow pages; NULL: see `blob`, or erased.
CREATE TABLE entry (
    seq          INTEGER PRIMARY KEY,
    stream       INTEGER NOT NULL,
    stream_seq   INTEGER NOT NULL,
    at_ms        INTEGER NOT NULL,
    version      INTEGER NOT NULL,
    event        TEXT    NOT NULL,
    actor        TEXT    NOT NULL,
    cause        TEXT,
    payload_hash BLOB    NOT NULL,
    prev_hash    BLOB    NOT NULL,
    hash         BLOB    NOT NULL,
    payload      BLOB
) STRICT;
CREATE UNIQUE INDEX entry_stream ON entry (stream, stream_seq);

-- Content-addressed bytes beside the log.
CREATE TABLE blob (
    id    INTEGER PRIMARY KEY,
    hash  BLOB NOT NULL UNIQUE,
    bytes BLOB NOT NULL
) STRICT;

-- Rows that follow from the log. What an entry already says is not said again: `seq` leads to it.
CREATE TABLE mail (
    id     BLOB    PRIMARY KEY,
    stream INTEGER NOT NULL,
    seq    INTEGER NOT NULL,
    taken  INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX mail_pending ON mail (stream, seq) WHERE taken IS NULL;

CREATE TABLE timer (
    id        TEXT    PRIMARY KEY,
    due_at_ms INTEGER NOT NULL,
    seq       INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX timer_due ON timer (due_at_ms);

CREATE TABLE part (
    id     TEXT    PRIMARY KEY,
    seq    INTEGER NOT NULL,
    state  INTEGER NOT NULL,
    native TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX part_state ON part (state, seq);

CREATE TABLE projection (
    kind    TEXT    NOT NULL,
    key     TEXT    NOT NULL,
    sort_ms INTEGER NOT NULL,
    value   BLOB    NOT NULL,
    PRIMARY KEY (kind, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX projection_sort ON projection (kind, sort_ms, key);

CREATE TABLE snapshot (
    stream     TEXT    PRIMARY KEY,
    stream_seq INTEGER NOT NULL,
    version    INTEGER NOT NULL,
    state      BLOB    NOT NULL
) STRICT;

-- Who owns what now. Not history: it is about processes that are alive. The epoch only ever grows.
CREATE TABLE owner (
    resource TEXT    PRIMARY KEY,
    worker   TEXT,
    epoch    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
