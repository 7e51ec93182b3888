package agent

import (
	"bytes"
	"container/list"
	"context"
	"sync"

	"fermata/tools"
	"fermata/tools/watch"
	"fermata/transcript"
)

// maxKnown is how many files of a session are remembered: those that were read or changed last.
const maxKnown = 5000

// known is what a session's model knows of files: a fold of the log, so that a restart and a fork forget nothing. It is a
// [tools.Memory]. Its methods may be called from any goroutine.
type known struct {
	store   *transcript.Store
	session transcript.SessionID
	watcher *watch.Watcher // nil: there is none

	looking sync.Mutex   // held while files are looked at; taken before mu
	watched *watch.Files // nil without a watcher, and before the first look

	mu      sync.Mutex
	upTo    int64                    // seq of the newest entry that all before were folded with
	files   map[string]*list.Element // of *knownFile, by path
	order   list.List                // the one that was read longest ago comes first
	pending map[callOfTurn][]*transcript.FileChanged
	reverts map[int64]*transcript.RevertStarted // without an end yet, by seq
	dropped []string                            // to be watched no longer
}

// knownFile is one file.
type knownFile struct {
	path  string
	read  string               // sha256 of what the model has read, or what its own tools made of that
	told  transcript.FileState // what it needs no notice of: what it read, was told of, or what its own commands left
	alike string               // sha256 of what was found to read the same as told
	last  look                 // at the disk; known.looking guards it
}

func newKnown(store *transcript.Store, session transcript.SessionID, watcher *watch.Watcher) *known {
	return &known{store: store, session: session, watcher: watcher}
}

// catchUp folds what was written since the last time, by whomever.
func (k *known) catchUp(ctx context.Context) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	entries, upTo, err := k.store.Sightings(ctx, k.session, k.upTo)
	if err != nil {
		return err
	}
	for _, e := range entries {
		k.add(e)
	}
	k.upTo = upTo
	return nil
}

// told folds entries that this process has written. Those before them, if there are any, come with the next catchUp; it does
// no harm to fold an entry again.
func (k *known) told(entries []transcript.Entry) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, e := range entries {
		k.add(e)
		if e.Seq == k.upTo+1 {
			k.upTo = e.Seq
		}
	}
}

// add folds one entry. A change that a tool was about to make is known once its call is said to have made it; what is not
// known to have happened stays as it was, so that it is told as a change if it did.
func (k *known) add(e transcript.Entry) {
	switch b := e.Body.(type) {
	case *transcript.TurnStarted:
		if b.Retries == "" { // else it was in the input before
			k.quoted(b.Prompt)
		}
		for _, f := range b.Changed {
			k.settle(f)
		}
	case *transcript.MessageDelivered:
		k.quoted(b.Prompt)
	case *transcript.FileChanged:
		if b.By == transcript.ByCommand {
			k.settle(stateOf(b.Path, b.After))
			return
		}
		if k.pending == nil {
			k.pending = map[callOfTurn][]*transcript.FileChanged{}
		}
		call := callOfTurn{b.Turn, b.Step, b.Call}
		k.pending[call] = append(k.pending[call], b)
	case *transcript.ToolSettled:
		call := callOfTurn{b.Turn, b.Step, b.Call}
		if b.State == transcript.ToolDone {
			k.changed(k.pending[call])
		}
		if b.State != transcript.ToolUnknown { // else its real result may come (S7)
			delete(k.pending, call)
		}
		for _, f := range b.Seen {
			k.know(f)
		}
		for _, f := range b.Touched {
			k.settle(f)
		}
	case *transcript.RevertStarted:
		if k.reverts == nil {
			k.reverts = map[int64]*transcript.RevertStarted{}
		}
		k.reverts[e.Seq] = b
	case *transcript.RevertEnded:
		k.reverted(k.reverts[b.Revert], b)
		delete(k.reverts, b.Revert)
	}
}

// changed notes what the model's own tools have done. A file that was only moved is not one that it has read by that.
func (k *known) changed(all []*transcript.FileChanged) {
	unread := map[string]string{} // what a file held that went away, by path
	for _, c := range all {
		if c.After == "" && k.files[c.Path] == nil {
			unread[c.Path] = c.Before
		}
	}
	for _, c := range all {
		if held, ok := unread[c.From]; c.From == "" || !ok || held != c.After {
			k.know(stateOf(c.Path, c.After))
		}
	}
}

// stateOf is a file by its hash, "" for none.
func stateOf(path, sha256 string) transcript.FileState {
	f := transcript.FileState{Path: path, SHA256: sha256}
	if sha256 == "" {
		f.Gone = transcript.GoneDeleted
	}
	return f
}

func (k *known) quoted(prompt []transcript.PromptPart) {
	for _, p := range prompt {
		if p.SHA256 != "" {
			k.know(transcript.FileState{Path: p.Path, SHA256: p.SHA256})
		}
	}
}

// reverted takes note of what a notice of its own tells.
func (k *known) reverted(started *transcript.RevertStarted, ended *transcript.RevertEnded) {
	if started == nil {
		return
	}
	for i, f := range started.Files {
		if i < len(ended.Files) && ended.Files[i].State == transcript.RevertDone {
			k.settle(stateOf(f.Path, f.After))
		}
	}
}

// know notes that the model has read a file, or knows that there is none.
func (k *known) know(f transcript.FileState) {
	at := k.files[f.Path]
	if f.SHA256 == "" {
		if at != nil {
			k.forget(at)
		}
		return
	}
	if at == nil {
		if k.files == nil {
			k.files = map[string]*list.Element{}
		}
		at = k.order.PushBack(&knownFile{path: f.Path})
		k.files[f.Path] = at
	}
	k.order.MoveToBack(at)
	file := at.Value.(*knownFile)
	file.read, file.told, file.alike = f.SHA256, f, ""
	for len(k.files) > maxKnown {
		k.forget(k.order.Front())
	}
}

// settle notes a state of a known file that the next notice need not tell.
func (k *known) settle(f transcript.FileState) {
	if at := k.files[f.Path]; at != nil {
		file := at.Value.(*knownFile)
		file.told, file.alike = f, ""
	}
}

func (k *known) forget(at *list.Element) {
	path := k.order.Remove(at).(*knownFile).path
	delete(k.files, path)
	k.dropped = append(k.dropped, path)
}

// Known is what the model read last of a file; see [tools.Memory].
func (k *known) Known(path string) (sha256 string, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	at := k.files[path]
	if at == nil {
		return "", false
	}
	return at.Value.(*knownFile).read, true
}

// Content is what was kept of a file; see [tools.Memory].
func (k *known) Content(ctx context.Context, sha256 string) []byte {
	b, err := content(ctx, k.store, sha256)
	if err != nil {
		return nil // it was too long to be kept
	}
	return b
}

// close ends the watching.
func (k *known) close() {
	k.looking.Lock()
	defer k.looking.Unlock()
	if k.watched != nil {
		k.watched.Close()
		k.watched = nil
	}
}

// seen stores what is to be remembered of files that a tool has shown.
func (s *Session) seen(ctx context.Context, files []tools.Seen) (out []transcript.FileState, err error) {
	for _, f := range files {
		if f.Content != nil {
			if _, err := s.log.PutBlob(ctx, f.Content); err != nil {
				return nil, err
			}
		}
		out = append(out, stateOf(f.Path, f.SHA256))
	}
	return out, nil
}

// quote remembers which file a part of a prompt is from, when that is a file of the workspace and still holds the part.
func (s *Session) quote(ctx context.Context, p *transcript.PromptPart) error {
	w, err := s.workspace()
	if err != nil {
		return nil // there are no files
	}
	f, err := w.Read(p.Path)
	if err != nil || f.Path != p.Path || !bytes.Contains(f.Content, []byte(p.Text)) {
		return nil // it is known by another name, or as something else
	}
	for _, seen := range tools.See(f.Path, f.Content) {
		p.SHA256 = seen.SHA256
		if seen.Content != nil && len(p.Text) == len(seen.Content) {
			_, err = s.log.PutBlob(ctx, seen.Content)
		}
	}
	return err
}
