-- Deleting a session is its user's right, and the one exception to the log being kept: rows of a session can be deleted
-- once it stands in deleted, and no others. A row of deleted stays for good, so that the number of a session is never
-- given to another one: a daemon that still has the deleted session open cannot write into a stranger's.
CREATE TABLE deleted (
	sid INTEGER PRIMARY KEY,
	at  INTEGER NOT NULL
);

-- Which sessions a blob is for. A row is written with the blob, before the entry that names it.
CREATE TABLE blob_use (
	sid    INTEGER NOT NULL,
	sha256 BLOB NOT NULL,
	PRIMARY KEY (sid, sha256)
) WITHOUT ROWID;
CREATE INDEX blob_use_sha256 ON blob_use (sha256);

INSERT OR IGNORE INTO blob_use (sid, sha256) SELECT sid, head FROM epoch UNION SELECT sid, tail FROM epoch;
INSERT OR IGNORE INTO blob_use (sid, sha256)
	SELECT sid, unhex(CASE WHEN json_valid(CAST(body AS TEXT)) THEN json_extract(CAST(body AS TEXT), '$.before') END) FROM entry WHERE kind = 'file.changed';
INSERT OR IGNORE INTO blob_use (sid, sha256)
	SELECT sid, unhex(CASE WHEN json_valid(CAST(body AS TEXT)) THEN json_extract(CAST(body AS TEXT), '$.after') END) FROM entry WHERE kind = 'file.changed';
INSERT OR IGNORE INTO blob_use (sid, sha256)
	SELECT sid, unhex(CASE WHEN json_valid(CAST(body AS TEXT)) THEN json_extract(CAST(body AS TEXT), '$.full') END) FROM entry WHERE kind = 'tool.settled';
DELETE FROM blob_use WHERE length(sha256) <> 32; -- of a field that is not there

DROP TRIGGER entry_kept;
DROP TRIGGER epoch_kept;
DROP TRIGGER fragment_kept;
DROP TRIGGER request_kept;
DROP TRIGGER blob_kept;
CREATE TRIGGER entry_kept    BEFORE DELETE ON entry    WHEN OLD.sid NOT IN (SELECT sid FROM deleted)
	BEGIN SELECT raise(ABORT, 'entries are never deleted'); END;
CREATE TRIGGER epoch_kept    BEFORE DELETE ON epoch    WHEN OLD.sid NOT IN (SELECT sid FROM deleted)
	BEGIN SELECT raise(ABORT, 'epochs are never deleted'); END;
CREATE TRIGGER fragment_kept BEFORE DELETE ON fragment WHEN OLD.sid NOT IN (SELECT sid FROM deleted)
	BEGIN SELECT raise(ABORT, 'fragments are never deleted'); END;
CREATE TRIGGER request_kept  BEFORE DELETE ON request  WHEN OLD.sid NOT IN (SELECT sid FROM deleted)
	BEGIN SELECT raise(ABORT, 'requests are never deleted'); END;
CREATE TRIGGER blob_kept     BEFORE DELETE ON blob
	WHEN EXISTS (SELECT 1 FROM blob_use u WHERE u.sha256 = OLD.sha256 AND u.sid NOT IN (SELECT sid FROM deleted))
	BEGIN SELECT raise(ABORT, 'blobs in use are never deleted'); END;
