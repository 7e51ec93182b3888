package transcript

import (
	"fmt"
	"slices"
	"strings"
)

// withheld heads an answer that checks do not admit (K2); a is nil when they have not come to anything.
func (r *renderer) withheld(b *Answer, a *Admission) string {
	switch {
	case a != nil && a.Withheld == Rejected:
		return "**Withheld, not part of the model input**: a check rejects it"
	case a == nil && !r.past.ended[b.Turn]:
		return "**Not part of the model input yet**: its checks are running"
	}
	return "**Withheld, not part of the model input**: not verified"
}

// verdictLines are what the checks of an answer said, one a line, "" when it has none.
func verdictLines(a *Admission, verdicts []*Verdict) string {
	last := LastVerdicts(verdicts)
	var lines []string
	for _, v := range last {
		said := "passes"
		switch v.Verdict {
		case VerdictReject:
			said = "rejects it"
		case VerdictError:
			said = "failed"
		}
		if v.Reason != "" {
			said += ": " + escapeInline(v.Reason)
		}
		lines = append(lines, fmt.Sprintf("+ Check %s %s", codeSpan(v.Check), said))
	}
	if a != nil {
		for _, c := range a.Checks {
			if !slices.ContainsFunc(last, func(v *Verdict) bool { return v.Check == c.Name }) {
				lines = append(lines, fmt.Sprintf("+ Check %s gave no verdict", codeSpan(c.Name)))
			}
		}
	}
	return strings.Join(lines, "\n")
}
