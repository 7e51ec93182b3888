-- The first schema. What the log says is never changed: entry, fragment, request, epoch and blob refuse UPDATE and DELETE.
-- session and turn are look-ups kept beside the log; journal holds the deltas of running answers and is emptied.
-- Times are milliseconds since 1970, UTC. Hashes are 32 bytes.

CREATE TABLE session (
	sid       INTEGER PRIMARY KEY,
	id        TEXT NOT NULL UNIQUE,
	workspace TEXT NOT NULL,
	title     TEXT NOT NULL,
	parent    TEXT NOT NULL,
	created   INTEGER NOT NULL,
	updated   INTEGER NOT NULL,
	last_seq  INTEGER NOT NULL,  -- of the newest entry: finds out when the newest was removed
	last_hash BLOB NOT NULL
);
CREATE INDEX session_updated ON session (updated, sid);

CREATE TABLE entry (
	sid  INTEGER NOT NULL REFERENCES session (sid),
	seq  INTEGER NOT NULL,       -- gapless from 1
	at   INTEGER NOT NULL,
	kind TEXT NOT NULL,
	hash BLOB NOT NULL,          -- over the previous entry's hash and all columns of this one
	body BLOB NOT NULL,          -- JSON
	PRIMARY KEY (sid, seq)
);

-- One turn of a session is open at a time, and a client id is used once: the two unique indexes see to it.
CREATE TABLE turn (
	id        TEXT PRIMARY KEY,
	sid       INTEGER NOT NULL REFERENCES session (sid),
	seq       INTEGER NOT NULL,  -- of turn.started
	client_id TEXT NOT NULL,
	ended     INTEGER,           -- seq of turn.ended
	outcome   TEXT NOT NULL
) WITHOUT ROWID;
CREATE UNIQUE INDEX turn_seq ON turn (sid, seq);
CREATE UNIQUE INDEX turn_open ON turn (sid) WHERE ended IS NULL;
CREATE UNIQUE INDEX turn_client ON turn (sid, client_id) WHERE client_id <> '';

CREATE TABLE epoch (
	sid   INTEGER NOT NULL REFERENCES session (sid),
	epoch INTEGER NOT NULL,      -- from 1
	seq   INTEGER NOT NULL,      -- of epoch.opened
	head  BLOB NOT NULL,         -- names of blobs
	tail  BLOB NOT NULL,
	PRIMARY KEY (sid, epoch)
) WITHOUT ROWID;

-- The JSON of one message as sent. parts is a JSON array of literal strings and of [offset, length] pairs, which stand for
-- bytes of the source entry's body: the text is stored once.
CREATE TABLE fragment (
	sid    INTEGER NOT NULL REFERENCES session (sid),
	epoch  INTEGER NOT NULL,
	n      INTEGER NOT NULL,     -- from 1 in each epoch
	source INTEGER NOT NULL,     -- seq of the entry that the message says
	size   INTEGER NOT NULL,     -- bytes of the rebuilt fragment
	parts  BLOB NOT NULL,
	PRIMARY KEY (sid, epoch, n)
) WITHOUT ROWID;

CREATE TABLE request (
	num      INTEGER PRIMARY KEY,
	id       TEXT NOT NULL UNIQUE,
	sid      INTEGER NOT NULL REFERENCES session (sid),
	seq      INTEGER NOT NULL,   -- of request.sent
	turn     TEXT NOT NULL,
	step     INTEGER NOT NULL,
	try      INTEGER NOT NULL,
	epoch    INTEGER NOT NULL,
	n        INTEGER NOT NULL,   -- the body is head, fragments 1 to n joined by commas, tail
	bytes    INTEGER NOT NULL,
	sha256   BLOB NOT NULL,      -- of the body, taken when it was stored
	midstate BLOB NOT NULL       -- of the hash before the tail: the next request goes on from there
);
CREATE UNIQUE INDEX request_seq ON request (sid, seq);

CREATE TABLE blob (
	num    INTEGER PRIMARY KEY,
	sha256 BLOB NOT NULL UNIQUE,
	body   BLOB NOT NULL
);

CREATE TABLE journal (
	sid     INTEGER NOT NULL REFERENCES session (sid),
	request TEXT NOT NULL,
	n       INTEGER NOT NULL,
	part    TEXT NOT NULL,
	text    TEXT NOT NULL,
	PRIMARY KEY (sid, request, n)
) WITHOUT ROWID;

CREATE TABLE lease (
	sid     INTEGER PRIMARY KEY REFERENCES session (sid),
	owner   TEXT NOT NULL,
	expires INTEGER NOT NULL
);

CREATE TRIGGER entry_kept    BEFORE DELETE ON entry    BEGIN SELECT raise(ABORT, 'entries are never deleted');    END;
CREATE TRIGGER entry_fixed   BEFORE UPDATE ON entry    BEGIN SELECT raise(ABORT, 'entries are never changed');    END;
CREATE TRIGGER epoch_kept    BEFORE DELETE ON epoch    BEGIN SELECT raise(ABORT, 'epochs are never deleted');     END;
CREATE TRIGGER epoch_fixed   BEFORE UPDATE ON epoch    BEGIN SELECT raise(ABORT, 'epochs are never changed');     END;
CREATE TRIGGER fragment_kept  BEFORE DELETE ON fragment BEGIN SELECT raise(ABORT, 'fragments are never deleted'); END;
CREATE TRIGGER fragment_fixed BEFORE UPDATE ON fragment BEGIN SELECT raise(ABORT, 'fragments are never changed'); END;
CREATE TRIGGER request_kept  BEFORE DELETE ON request  BEGIN SELECT raise(ABORT, 'requests are never deleted');   END;
CREATE TRIGGER request_fixed BEFORE UPDATE ON request  BEGIN SELECT raise(ABORT, 'requests are never changed');   END;
CREATE TRIGGER blob_kept     BEFORE DELETE ON blob     BEGIN SELECT raise(ABORT, 'blobs are never deleted');      END;
CREATE TRIGGER blob_fixed    BEFORE UPDATE ON blob     BEGIN SELECT raise(ABORT, 'blobs are never changed');      END;
