package process

import (
	"crypto/rand"
	"slices"
	"strings"
)

// tagName is the variable by which processes of a program are known again, also in another session or group.
const tagName = "FERMATA_RUN"

func newTag() string { return tagName + "=" + rand.Text() }

// environ is the environment of a program: the daemon's without what looks like a secret or is named as one, and
// with what keeps programs from asking for input they will not get.
func environ(of, secrets []string, dir, tag string) []string {
	set := []string{
		"PWD=" + dir, "TERM=dumb", "PAGER=cat", "GIT_PAGER=cat", "GIT_TERMINAL_PROMPT=0",
		"NoDefaultCurrentDirectoryInExePath=1", // Windows: a program in the root is run by its path only
		tag,
	}
	env := slices.DeleteFunc(slices.Clone(of), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return isSecret(name) || slices.ContainsFunc(secrets, func(s string) bool { return strings.EqualFold(s, name) }) ||
			slices.ContainsFunc(set, func(s string) bool { return strings.HasPrefix(s, name+"=") })
	})
	return append(env, set...)
}

// isSecret judges a variable by its name: OPENAI_API_KEY, GITHUB_TOKEN, AWS_SECRET_ACCESS_KEY, PGPASSWORD, MYSQL_PWD; also one
// of several, as API_KEYS and API_KEY_2.
func isSecret(name string) bool {
	var parts []string
	for p := range strings.SplitSeq(strings.ToUpper(name), "_") {
		if p = strings.TrimRight(p, "0123456789"); p != "" {
			parts = append(parts, p)
		}
	}
	for _, p := range parts {
		p = strings.TrimSuffix(p, "S")
		for _, word := range []string{"TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL", "APIKEY", "SECRETKEY", "ACCESSKEY", "PRIVATEKEY"} {
			if strings.HasSuffix(p, word) {
				return true
			}
		}
		if p == "KEY" && len(parts) > 1 {
			return true
		}
	}
	return len(parts) > 1 && slices.Contains([]string{"PAT", "PASS", "PWD", "COOKIE", "AUTH"}, parts[len(parts)-1])
}
