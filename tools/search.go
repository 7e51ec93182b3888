package tools

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"runtime"
	"strings"
	"sync"
	"unicode/utf8"

	"fermata/tools/workspace"
)

// Bounds of a search.
const (
	searchWorkers = 8         // at most, files searched side by side
	searchAhead   = 32        // jobs that are searched before it is known whether they are needed
	searchHead    = 256 << 10 // bytes of a file that are looked at as a whole
	searchSteps   = 256 << 20 // of an expression, between two looks at whether the search is stopped
)

// search is one grep. Files are searched side by side and shown in the order of a walk, with memory for as many as are
// searched ahead.
type search struct {
	*pattern
	w       *workspace.Workspace
	context int
	limit   int
	may     func(path string) (why string, ok bool) // nil: any file may be read
	open    map[string]bool                         // documents of the editor
}

// searchJob is some files to search, one after the other. Its fields belong to the producer, then to one worker, and after done
// to the consumer.
type searchJob struct {
	run   *workspace.Run // the files are in it; nil: they are named
	pick  []int          // of run
	names []string
	left  []string // files that may not be read without asking

	found [][]found // of each
	deny  []string  // files that this process may not read
	long  []string  // files with a line that was not searched to its end, and in whose beginning nothing was found
	done  chan struct{}
}

// run searches the files of the jobs that produce makes. When it has enough, produce's context ends.
func (s *search) run(ctx context.Context, produce func(ctx context.Context, job func(*searchJob) error) error) Result {
	inner, enough := context.WithCancel(ctx)
	defer enough()
	caught := bugs{stop: enough}
	order := make(chan *searchJob, searchAhead) // all jobs, in order
	work := make(chan *searchJob, searchAhead)
	var failed error
	var wg sync.WaitGroup
	wg.Go(func() { // ends with the walk, or when no more is needed
		defer close(order)
		defer close(work)
		defer caught.catch()
		failed = produce(inner, func(j *searchJob) error {
			j.done = make(chan struct{})
			select {
			case order <- j:
				work <- j // it has room for as many as order
				return nil
			case <-inner.Done():
				j.close()
				return context.Cause(inner)
			}
		})
	})
	for range min(runtime.GOMAXPROCS(0), searchWorkers) {
		wg.Go(func() { // ends with the producer; what is not needed any more is only let go
			buf := make([]byte, searchHead)
			for j := range work {
				func() {
					defer close(j.done)
					defer caught.catch()
					s.do(inner, j, buf)
				}()
			}
		})
	}
	o := output{search: s}
	for j := range order {
		<-j.done
		if !o.full && inner.Err() == nil {
			if o.add(j); o.full || o.matches >= s.limit {
				enough()
			}
		}
	}
	wg.Wait()
	caught.raise()
	return o.result(ctx, failed)
}

func (j *searchJob) close() {
	if j.run != nil {
		j.run.Close()
		j.run = nil
	}
}

// single is the job of one file.
func (s *search) single(name string) *searchJob {
	if _, ok := s.mayRead(name); !ok {
		return &searchJob{left: []string{name}}
	}
	return &searchJob{names: []string{name}}
}

func (s *search) mayRead(name string) (why string, ok bool) {
	if s.may == nil {
		return "", true
	}
	return s.may(name)
}

// walk makes jobs of the files under dir.
func (s *search) walk(ctx context.Context, dir string, match func(string) bool, rg string, job func(*searchJob) error) error {
	filter := newRipgrepFilter(s, rg, job)
	err := s.w.WalkRuns(ctx, dir, func(r *workspace.Run) error {
		j := &searchJob{run: r}
		for i := range r.Names {
			name := r.Path(i)
			if !match(below(dir, name)) {
				continue
			}
			if _, ok := s.mayRead(name); !ok {
				j.left = append(j.left, name)
				continue
			}
			j.pick = append(j.pick, i)
			if filter != nil {
				j.names = append(j.names, name)
			}
		}
		switch {
		case len(j.pick)+len(j.left) == 0:
			j.close()
			return nil
		case filter != nil:
			j.close() // no folder is held open until ripgrep has looked
			return filter.add(ctx, j)
		}
		return job(j)
	})
	if filter != nil && (err == nil || isCut(err)) {
		if e := filter.flush(ctx); e != nil {
			err = e
		}
	}
	return err
}

func isCut(err error) bool {
	_, cut := errors.AsType[*workspace.CutError](err)
	return cut
}

// output is what a search shows.
type output struct {
	*search
	out     strings.Builder
	matches int
	full    bool     // something that was found is not shown
	left    []string // as in searchJob
	deny    []string // as in searchJob
	long    []string // as in searchJob
}

func (o *output) add(j *searchJob) {
	o.left = append(o.left, j.left...)
	o.deny = append(o.deny, j.deny...)
	o.long = append(o.long, j.long...)
	for _, f := range j.found {
		for _, g := range f {
			if o.matches >= o.limit && (g.match || g.apart) || o.out.Len()+len(g.text) > grepBytes { // only the context of the last match still goes in
				o.full = true
				return
			}
			if o.context > 0 && o.out.Len() > 0 && g.apart {
				o.out.WriteString("--\n")
			}
			o.out.WriteString(g.text)
			if g.match {
				o.matches++
			}
		}
	}
}

func (o *output) result(ctx context.Context, failed error) Result {
	ended := o.full || o.matches >= o.limit
	cut, _ := errors.AsType[*workspace.CutError](failed)
	switch {
	case ctx.Err() != nil:
		return stopped(o.out.String())
	case failed != nil && cut == nil && !ended:
		return failf("grep: %v", failed)
	case ended:
		fmt.Fprintf(&o.out, "(stopped after %s; there may be more: narrow the pattern, the path or the glob)\n", plural(o.matches, "match"))
	case o.out.Len() == 0:
		o.out.WriteString("(no line matches)")
	}
	r := leftOfLines(done(strings.TrimSuffix(o.out.String(), "\n")), o.long)
	return leftOfTree(leftOut(denied(r, o.deny), o.left), cut)
}

// do searches a job's files, as long as more of them could be shown. buf is the worker's own.
func (s *search) do(ctx context.Context, j *searchJob, buf []byte) {
	defer j.close()
	matches, size := 0, 0
	more := func() bool { return ctx.Err() == nil && matches < s.limit && size <= grepBytes }
	search := func(name string) {
		f, long, err := s.file(ctx, s.w, name, s.limit)
		switch {
		case errors.Is(err, fs.ErrPermission):
			j.deny = append(j.deny, name)
		case long:
			j.long = append(j.long, name)
		}
		for _, g := range f {
			size += len(g.text)
			if g.match {
				matches++
			}
		}
		j.found = append(j.found, f)
	}
	for _, i := range j.pick {
		if !more() {
			return
		}
		if s.worth(ctx, j.run, i, buf) {
			search(j.run.Path(i))
		}
	}
	for _, name := range j.names {
		if !more() {
			return
		}
		search(name)
	}
}

// worth reports whether a file can have a matching line. It looks at the beginning of the file only, and at most files not twice.
func (s *search) worth(ctx context.Context, r *workspace.Run, i int, buf []byte) bool {
	if len(s.open) > 0 && s.open[r.Path(i)] {
		return true
	}
	n, size, err := r.Head(i, buf)
	b := buf[:n]
	switch {
	case err != nil:
		return s.open[r.Path(i)] || errors.Is(err, fs.ErrPermission) // which file says
	case workspace.LooksBinary(b):
		return false
	case size > int64(n) || workspace.LooksUTF16(b):
		return true
	}
	return s.canMatch(ctx, b)
}

// canMatch reports whether the text b, which is not UTF-16, can have a matching line. When it is true there may be none all the
// same.
func (s *search) canMatch(ctx context.Context, b []byte) bool {
	if len(s.needles) > 0 {
		ascii := true
		for _, n := range s.needles {
			if n.in(b) {
				return true
			}
			ascii = ascii && n.ascii()
		}
		return !ascii && !utf8.Valid(b) // a letter beyond ASCII can be written in another encoding
	}
	if s.apart || bytes.IndexByte(b, '\r') >= 0 || bytes.IndexByte(b, 0) >= 0 || !utf8.Valid(b) || len(b)*s.size > searchSteps {
		return true
	}
	_, b = workspace.CutBOM(b)
	return s.re.Match(b)
}

// found is one line of output.
type found struct {
	text  string // with its newline
	match bool   // else context
	apart bool   // does not follow the line before it in the file
}

// file finds at most limit matching lines in one file, and ends when it has more text than is shown of all. A file that is gone,
// cannot be read (err says why) or is binary has none; a NUL byte further down ends the search there. long says that a line in which nothing was
// found goes on beyond what is searched of one.
func (s *search) file(ctx context.Context, w *workspace.Workspace, name string, limit int) (out []found, long bool, err error) {
	st, err := w.Stream(name)
	if err != nil {
		return nil, false, err
	}
	defer st.Close()
	if st.Path != name { // a link has changed since it was found
		if _, ok := s.mayRead(st.Path); !ok {
			return nil, false, nil
		}
	}
	text, _, _ := st.Text()
	if text == nil { // binary; an encoding that is not known is searched as it is
		return nil, false, nil
	}
	lines := newLineReader(text, grepLineKeep)
	show := workspace.Show(name)
	var before []found               // lines that are context if a match follows
	matches, after, last := 0, 0, -1 // last is the number of the last line in out
	size, counted := 0, 0            // of the text of so many lines in out
	for n := 1; (matches < limit || after > 0) && size <= grepBytes; n++ {
		ln, err := lines.next(ctx)
		if err != nil || bytes.IndexByte(ln.text, 0) >= 0 {
			return out, long, nil
		}
		at, hit := s.match(ctx, ln.text)
		long = long || !hit && ln.size > int64(len(ln.text))
		switch {
		case hit && matches < limit:
			for i, b := range before {
				b.apart = i == 0 && n-len(before) != last+1
				out = append(out, b)
			}
			out = append(out, found{grepLine(show, ':', n, ln, at), true, len(before) == 0 && n != last+1})
			before, last, after = before[:0], n, s.context
			matches++
		case after > 0:
			out = append(out, found{grepLine(show, '-', n, ln, 0), false, false})
			last = n
			after--
		case s.context > 0:
			if len(before) == s.context {
				before = append(before[:0], before[1:]...)
			}
			before = append(before, found{text: grepLine(show, '-', n, ln, 0)})
		}
		for ; counted < len(out); counted++ {
			size += len(out[counted].text)
		}
	}
	return out, long, nil
}

// match finds where in a line the expression first matches; nowhere when ctx ends.
func (s *search) match(ctx context.Context, text []byte) (at int, ok bool) {
	if len(s.needles) > 0 && !inAny(s.needles, text) {
		return 0, false
	}
	if len(text) <= grepLineLen {
		return 0, s.re.Match(text)
	}
	loc := []int(nil)
	if len(text)*s.size > searchSteps {
		loc = s.re.FindReaderIndex(&stoppableText{ctx: ctx, text: text})
	} else {
		loc = s.re.FindIndex(text)
	}
	if loc == nil {
		return 0, false
	}
	return loc[0], true
}

// stoppableText is a text for an expression, and ends early when ctx does.
type stoppableText struct {
	ctx  context.Context
	text []byte
	read int
}

func (t *stoppableText) ReadRune() (r rune, size int, err error) {
	if t.read++; t.read%1024 == 0 && t.ctx.Err() != nil {
		return 0, 0, context.Cause(t.ctx)
	}
	if len(t.text) == 0 {
		return 0, 0, io.EOF
	}
	r, size = utf8.DecodeRune(t.text)
	t.text = t.text[size:]
	return r, size, nil
}

// grepLine is one line of output. Of a long line it shows the part around at.
func grepLine(name string, sep rune, n int, ln line, at int) string {
	text := ln.text
	from := 0
	if at > grepLineLen/2 {
		from = at - grepLineLen/4
		text = text[from:]
	}
	cut := len(text) > grepLineLen
	if cut {
		text = text[:grepLineLen]
	}
	show := strings.ToValidUTF8(string(text), "\uFFFD")
	if from > 0 {
		show = "…" + strings.TrimLeft(show, "\uFFFD")
	}
	if cut || from > 0 {
		show = strings.TrimRight(show, "\uFFFD") + fmt.Sprintf("… (a line of %d bytes)", ln.size)
	}
	return fmt.Sprintf("%s%c%d%c%s\n", name, sep, n, sep, show)
}
