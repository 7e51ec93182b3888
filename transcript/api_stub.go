package transcript

import (
	"context"
	"errors"
	"io"
	"time"
)

var errTODO = errors.New("not written yet")

type Options struct {
	BusyTimeout time.Duration
	Power       bool
	ReadOnly    bool
	Version     string
	Owner       string
}
type Store struct{ path string }

func Open(path string, o Options) (*Store, error) { return nil, errTODO }
func (s *Store) Close() error                     { return nil }
func (s *Store) Path() string                     { return s.path }

type SessionInfo struct {
	ID          SessionID
	Workspace   string
	Title       string
	Parent      SessionID
	Created     time.Time
	Updated     time.Time
	Turns       int
	LastOutcome Outcome
	Seq         int64
}
type SessionQuery struct {
	Workspace string
	Query     string
	Limit     int
	Cursor    string
}
type TurnInfo struct {
	Session  SessionID
	Turn     TurnID
	Seq      int64
	Started  *TurnStarted
	EndedSeq int64
	Ended    *TurnEnded
	Newest   bool
}

func (s *Store) NewSession(ctx context.Context, o SessionOpened) (*Log, error) { return nil, errTODO }
func (s *Store) Log(ctx context.Context, id SessionID) (*Log, error)           { return nil, errTODO }
func (s *Store) Session(ctx context.Context, id SessionID) (SessionInfo, error) {
	return SessionInfo{}, errTODO
}
func (s *Store) Sessions(ctx context.Context, q SessionQuery) ([]SessionInfo, string, error) {
	return nil, "", errTODO
}
func (s *Store) Rename(ctx context.Context, id SessionID, title string) error { return errTODO }
func (s *Store) Entries(ctx context.Context, id SessionID, after int64, limit int) ([]Entry, error) {
	return nil, errTODO
}
func (s *Store) Turn(ctx context.Context, t TurnID) (TurnInfo, error) { return TurnInfo{}, errTODO }
func (s *Store) TurnByClientID(ctx context.Context, id SessionID, clientID string) (TurnID, bool, error) {
	return "", false, errTODO
}
func (s *Store) NewestRequest(ctx context.Context, id SessionID, workspace string) (RequestID, error) {
	return "", errTODO
}

type RequestInfo struct {
	ID          RequestID
	Session     SessionID
	Seq         int64
	Turn        TurnID
	Step        int
	Try         int
	Epoch       int
	N           int
	Bytes       int64
	SHA256      string
	Route       string
	Provider    string
	Model       string
	Dialect     string
	At          time.Time
	Outcome     string
	Status      int
	Error       string
	Usage       *Usage
	FirstDelta  int64
	Millis      int64
}

func (s *Store) Requests(ctx context.Context, id SessionID) ([]RequestInfo, error) {
	return nil, errTODO
}

type InputPart struct {
	Kind   string
	Offset int64
	Length int64
	Role   Role
	Source int64
	Turn   TurnID
}
type Input struct {
	Info         RequestInfo
	Body         []byte
	SHA256       string
	Verified     bool
	Parts        []InputPart
	Previous     RequestID
	SharedPrefix int64
}

func (s *Store) Input(ctx context.Context, r RequestID) (*Input, error) { return nil, errTODO }
func (s *Store) Body(ctx context.Context, r RequestID) (io.ReadCloser, int64, error) {
	return nil, 0, errTODO
}
func (s *Store) PutBlob(ctx context.Context, b []byte) (string, error)   { return "", errTODO }
func (s *Store) Blob(ctx context.Context, sha string) ([]byte, error)     { return nil, errTODO }

type Problem struct {
	Session SessionID
	Seq     int64
	Request RequestID
	What    string
}
type VerifyReport struct {
	Sessions, Entries, Turns, Requests, Fragments, Blobs int
	Bytes                                                int64
	Unencoded                                            int
	Running, Open                                        []SessionID
	Problems                                             []Problem
}

func (s *Store) Verify(ctx context.Context, encoders func(dialect string) (Encoder, bool)) (VerifyReport, error) {
	return VerifyReport{}, errTODO
}

type Log struct{}

func (l *Log) Session() SessionID                                     { return "" }
func (l *Log) Opened() SessionOpened                                  { return SessionOpened{} }
func (l *Log) Seq() int64                                             { return 0 }
func (l *Log) Append(ctx context.Context, b ...Body) ([]Entry, error) { return nil, errTODO }
func (l *Log) Journal(req RequestID, turn TurnID, step int, part PartType, text string) error {
	return errTODO
}

type Send struct {
	Turn         TurnID
	Step, Try    int
	Route        string
	Provider     string
	Model        string
	Enc          Encoder
	Head, Tail   []byte
	Instructions string
	Tools        string
	Started      *TurnStarted
}
type Sent struct {
	Request RequestID
	Bytes   int64
	SHA256  string
	Entries []Entry
}

func (l *Log) Send(ctx context.Context, s Send) (Sent, error) { return Sent{}, errTODO }

type Conclusion struct {
	Ended     RequestEnded
	Answer    *Answer
	Checked   bool
	Receipts  []*ToolSettled
	TurnEnded *TurnEnded
}

func (l *Log) Conclude(ctx context.Context, c Conclusion) ([]Entry, error) { return nil, errTODO }
func (l *Log) Lease(ctx context.Context) error                             { return errTODO }
func (l *Log) Renew(ctx context.Context) error                             { return errTODO }
func (l *Log) Release(ctx context.Context) error                           { return errTODO }
func (l *Log) Repair(ctx context.Context, evidence func(path string) (sha256 string, exists bool, err error)) ([]Entry, error) {
	return nil, errTODO
}
