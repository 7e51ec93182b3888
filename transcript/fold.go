package transcript

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Role is whose message a [Message] is.
type Role string

// The roles in a model input.
const (
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "tool"
)

// Message is one message of a model input, folded from the log: a user message, an admitted answer or a settled call.
// Exactly the field of its role is set. Source is the seq of the entry that it says. It is read-only: the fold and
// the store share it.
type Message struct {
	Role   Role
	Source int64
	User   *TurnStarted // RoleUser; of a delivered message, that one as if a turn had started with it
	Answer *Answer      // RoleAssistant
	Result *ToolSettled // RoleTool

	Origin  Origin // RoleAssistant: which model said it
	Foreign bool   // that is not the model this input is for: its reasoning and signatures are not sendable (T2)
}

// For is m as a message of an input of the epoch: Foreign is set.
func (m Message) For(e EpochOpened) Message {
	m.Foreign = m.Role == RoleAssistant && m.Origin.sender() != e.origin().sender()
	return m
}

// sender is o without the version of its dialect: another version still reads what an earlier one has stored.
func (o Origin) sender() Origin {
	if i := strings.LastIndexByte(o.Dialect, '/'); i >= 0 {
		o.Dialect = o.Dialect[:i]
	}
	return o
}

// Encoder turns a message into its fragment: the JSON of the message as a dialect sends it, or nothing for one of which
// nothing can be sent (T2). It is a pure function (M1); Dialect names it with its version, as [EpochOpened].Dialect records.
type Encoder interface {
	Dialect() string
	Encode(m Message) ([]byte, error)
}

// UserText is the user message in a model input: the notice, then what the user said, file ranges and selections fenced
// and named. Of a retry it is the notice alone: what the user said is in the input already (F3). It is part of the
// encoders' definition: changing it needs a new dialect version.
//
// Invariant: what stands in a file or its name ends no fence, and so is never taken for the user's words: a repository is not
// trusted (TestWhatAFileHoldsStaysWithinItsFence).
func (t *TurnStarted) UserText() string {
	return t.userText(func(b *strings.Builder, p PromptPart) {
		path := p.Path
		if strings.ContainsFunc(path, func(r rune) bool { return !unicode.IsPrint(r) }) {
			path = strconv.Quote(path)
		}
		fence := strings.Repeat("`", max(longestRun(p.Text, '`')+1, 3))
		fmt.Fprintf(b, "%s, lines %d-%d:\n%s\n%s", path, p.Start, p.End, fence, p.Text)
		if !strings.HasSuffix(p.Text, "\n") {
			b.WriteString("\n")
		}
		b.WriteString(fence)
	})
}

// UserTextInShortFences is [TurnStarted.UserText] as it was sent before fences were longer than those in the text: for the
// dialects that logs name and nobody sends with any more.
func (t *TurnStarted) UserTextInShortFences() string {
	return t.userText(func(b *strings.Builder, p PromptPart) {
		fmt.Fprintf(b, "%s, lines %d-%d:\n```\n%s", p.Path, p.Start, p.End, p.Text)
		if !strings.HasSuffix(p.Text, "\n") {
			b.WriteString("\n")
		}
		b.WriteString("```")
	})
}

func (t *TurnStarted) userText(fenced func(*strings.Builder, PromptPart)) string {
	var b strings.Builder
	if t.Notice != "" {
		b.WriteString(t.Notice)
		if t.Retries != "" {
			return b.String()
		}
		b.WriteString("\n\n")
	}
	for i, p := range t.Prompt {
		if i > 0 {
			b.WriteString("\n\n")
		}
		switch p.Type {
		case "file", "selection":
			fenced(&b, p)
		default:
			b.WriteString(p.Text)
		}
	}
	return b.String()
}

// PromptText is what the user said without the notice: for titles, lists and the prompt offered back (S6).
func (t *TurnStarted) PromptText() string {
	var parts []string
	for _, p := range t.Prompt {
		if p.Type == "text" {
			parts = append(parts, p.Text)
		}
	}
	return strings.Join(parts, "\n\n")
}

// Fold turns a log into the messages of a model input (M1). Feed it every entry of a session in order with Add; it is
// not safe for concurrent use. Messages come out in the legal order of every dialect: a user message when its turn
// starts or a queued message is delivered, an answer when it is admitted, the results of an answer's calls, in the order of
// the calls, once all of them are settled (invariant 4).
type Fold struct {
	origin  Origin            // of the newest epoch
	answers map[int64]Message // recorded in the last turn and not admitted (yet)
	open    *Answer           // admitted, with calls that are not all settled
	results []Message         // settled calls of open
}

// folds reports whether Add looks at entries of a kind; the others need not be decoded for it.
func folds(k Kind) bool {
	switch k {
	case KindTurnStarted, KindEpochOpened, KindAnswer, KindAdmission, KindToolSettled, KindMessageDelivered:
		return true
	}
	return false
}

// Add folds one entry and returns the messages that it completes, mostly none or one. A nil Body (damaged) adds nothing.
func (f *Fold) Add(e Entry) []Message {
	switch b := e.Body.(type) {
	case *TurnStarted:
		f.answers = nil // Keep and Recheck reach back to the session's last turn only (F4, K5)
		return []Message{{Role: RoleUser, Source: e.Seq, User: b}}
	case *MessageDelivered:
		return []Message{{Role: RoleUser, Source: e.Seq, User: b.user()}}
	case *EpochOpened:
		f.origin = b.origin()
	case *Answer:
		if f.answers == nil {
			f.answers = map[int64]Message{}
		}
		m := Message{Role: RoleAssistant, Source: e.Seq, Origin: f.origin}
		m.say(b)
		f.answers[e.Seq] = m
	case *Admission:
		m, ok := f.answers[b.Answer]
		if !ok || !b.Admitted {
			return nil
		}
		delete(f.answers, b.Answer)
		if len(m.Answer.Calls()) > 0 {
			f.open, f.results = m.Answer, nil
		}
		return []Message{m}
	case *ToolSettled:
		if f.open == nil || b.Late || b.Turn != f.open.Turn || b.Step != f.open.Step {
			return nil
		}
		f.results = append(f.results, Message{Role: RoleTool, Source: e.Seq, Result: b})
		calls := f.open.Calls()
		if len(f.results) < len(calls) {
			return nil
		}
		order := func(m Message) int {
			return slices.IndexFunc(calls, func(c Call) bool { return c.ID == m.Result.Call })
		}
		slices.SortStableFunc(f.results, func(a, b Message) int { return order(a) - order(b) })
		out := f.results
		f.open, f.results = nil, nil
		return out
	}
	return nil
}
