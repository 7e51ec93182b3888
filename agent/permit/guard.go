package permit

import (
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// secretFiles are the built-in patterns of files that hold keys. They are written in lower case.
var secretFiles = []string{
	".env", ".env.*", ".env-*", ".env_*", ".envrc", "*.env",
	"*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.kdbx", "*.ppk", "*.p8", "*.asc.key", "*.gpg",
	"id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*",
	".netrc", "_netrc", ".npmrc", ".yarnrc.yml", ".pypirc", ".pgpass", ".my.cnf", ".htpasswd", ".git-credentials",
	"credentials", "credentials.*", ".credentials*", "kubeconfig", "kubeconfig.*", "*.kubeconfig",
	"secrets.json", "secrets.toml", "secrets.yaml", "secrets.yml", ".vault-token", ".dockercfg", ".dockerconfigjson",
	"service-account*.json", "*.tfvars", "*.tfstate", "*.tfstate.*", ".terraformrc", ".s3cfg", ".boto",
	"**/.kube/config", "**/.docker/config.json", "**/.aws/*", "**/.ssh/**", "**/.gnupg/**", "**/.azure/**",
	"**/.config/gcloud/**", "**/.config/gh/hosts.yml",
	"**/.git/config*", "**/.git/credentials*", "**/.git/modules/**/config*", "**/.git/worktrees/**/config*", // addresses with a password
}

// publicFiles are exceptions of secretFiles: what people commit on purpose.
var publicFiles = []string{
	".env.example", ".env.sample", ".env.template", ".env.dist", ".env.defaults", "example.env", "sample.env",
	"*.pub", "**/.ssh/known_hosts", "*.tfvars.example",
	"credentials.{go,rs,c,h,cc,cpp,hpp,cs,java,kt,kts,scala,swift,m,py,pyi,rb,php,pl,lua,js,jsx,mjs,cjs,ts,tsx,vue,svelte,ex,exs,erl,hs,ml,clj,dart,md,rst,adoc,html,css,scss}",
}

// Secret reports whether the file at a resolved path is one of those that are asked about also when they are only read,
// and the pattern that makes it so.
func (p Policy) Secret(name string) (pattern string, ok bool) {
	for _, s := range p.NotSecrets {
		if matchesExactly(s, name) {
			return "", false
		}
	}
	plain := plainName(name)
	for _, s := range p.Secrets {
		if matches(s, plain) {
			return s, true
		}
	}
	if _, ok := builtIn(public, plain); ok {
		return "", false
	}
	return builtIn(secrets, plain)
}

// filePattern is a built-in pattern, and what is quick to tell of the names that it matches. Nearly no name is one, and a search
// asks about each file.
type filePattern struct {
	text  string
	whole bool   // it is about the whole path, not the last part alone
	part  string // of such a path
	start string // of the last part alone
	end   string
}

var secrets, public = readPatterns(secretFiles), readPatterns(publicFiles)

func readPatterns(list []string) (out []filePattern) {
	for _, s := range list {
		f := filePattern{text: s, end: s[strings.LastIndexAny(s, "*}")+1:]}
		if inner, ok := strings.CutPrefix(s, "**/"); ok { // which can stand for no folder at all
			f.whole, f.part = true, inner[:strings.Index(inner, "/")]
			f.end = inner[strings.LastIndexAny(inner, "*}")+1:]
		} else {
			f.start = s[:strings.IndexAny(s+"*", "*{")]
		}
		out = append(out, f)
	}
	return out
}

// builtIn finds the pattern that a plain name matches.
func builtIn(patterns []filePattern, plain string) (pattern string, ok bool) {
	base := path.Base(plain)
	for i := range patterns {
		switch f := &patterns[i]; {
		case !f.whole && (!strings.HasPrefix(base, f.start) || !strings.HasSuffix(base, f.end)):
		case f.whole && (!strings.HasSuffix(plain, f.end) || !strings.Contains(plain, f.part)):
		case matchesExactly(f.text, plain):
			return f.text, true
		}
	}
	return "", false
}

// shown is a name that a reason can hold: in one line, with nothing that a terminal acts on.
func shown(name string) string {
	for _, r := range name {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return strconv.Quote(name)
		}
	}
	return name
}

// plainName is a path without what systems ignore in names, and without the endings of backups.
func plainName(name string) string {
	name = plainPath(name)
	for {
		short := name
		for _, end := range []string{"~", ".bak", ".old", ".orig", ".save", ".swp", ".tmp"} {
			short = strings.TrimSuffix(short, end)
		}
		if short == name {
			return name
		}
		name = short
	}
}

func plainPath(name string) string {
	parts := strings.Split(name, "/")
	for i, part := range parts {
		if part != "." && part != ".." {
			parts[i] = plainPart(part)
		}
	}
	return strings.Join(parts, "/")
}

// plainPart is one part of a path in lower case, without what systems ignore in it.
func plainPart(part string) string {
	if isPlain(part) {
		return part
	}
	part = strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Cf, r) { // HFS+ ignores such characters in names
			return -1
		}
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			if f < utf8.RuneSelf && r >= utf8.RuneSelf { // what systems without letter case take for an ASCII letter
				return unicode.ToLower(f)
			}
		}
		return unicode.ToLower(r)
	}, part)
	part, _, _ = strings.Cut(part, ":")  // NTFS: a stream of the file
	return strings.TrimRight(part, " .") // Windows ignores these
}

// isPlain is quick to tell that most parts are as plainPart makes them.
func isPlain(part string) bool {
	for i := range len(part) {
		if c := part[i]; c >= utf8.RuneSelf || c >= 'A' && c <= 'Z' || c == ':' {
			return false
		}
	}
	return !strings.HasSuffix(part, " ") && !strings.HasSuffix(part, ".")
}

// inGit reports whether a path is, or lies in, something that a file system may take for ".git".
func inGit(name string) bool {
	for part := range strings.SplitSeq(name, "/") {
		if part = plainPart(part); part == ".git" || part == "git~1" {
			return true
		}
	}
	return false
}

// protected says why a call is denied in every mode; "" means that it is not.
func (p Policy) protected(c Call) string {
	for _, name := range c.Paths {
		switch {
		case name == ".." || strings.HasPrefix(name, "../") || strings.HasPrefix(name, "/"):
			return shown(name) + " is outside the workspace"
		case p.ours(absolute(c.Root, name)):
			return shown(name) + " is protected: it holds fermata's own data or configuration"
		case !c.ReadOnly && slices.ContainsFunc(p.Protected, func(folder string) bool { return within(absolute(c.Root, name), folder) }):
			return shown(name) + " is protected: fermata's own data or configuration lies in it"
		case !c.ReadOnly && inGit(name):
			return shown(name) + " is protected: it belongs to git; use git commands instead"
		}
	}
	return ""
}

// ours reports whether an absolute path is or lies in one of the protected folders.
func (p Policy) ours(name string) bool {
	return slices.ContainsFunc(p.Protected, func(folder string) bool { return within(folder, name) })
}

// oursAtHome is ours for a name that begins with the home folder, which is not known here: any folder that leads to two parts
// of a protected one is taken for it.
func (p Policy) oursAtHome(name string) bool {
	_, tail, ok := strings.Cut(name, "/")
	tail = strings.TrimPrefix(path.Clean("/"+tail), "/")
	return ok && strings.HasPrefix(name, "~") && slices.ContainsFunc(p.Protected, func(folder string) bool {
		parts := strings.Split(slashed(folder), "/")
		for i := range len(parts) - 1 {
			if within(strings.Join(parts[i:], "/"), tail) && parts[i] != "" {
				return true
			}
		}
		return false
	})
}

// within reports whether name is the folder or lies in it, apart from letter case and what systems ignore in names.
func within(folder, name string) bool {
	folder, name = plainPath(slashed(folder)), plainPath(slashed(name))
	rest, ok := strings.CutPrefix(name, strings.TrimSuffix(folder, "/"))
	return ok && folder != "" && (rest == "" || rest[0] == '/')
}

func slashed(name string) string { return path.Clean(strings.ReplaceAll(name, `\`, "/")) }

func absolute(root, name string) string {
	if strings.HasPrefix(name, "/") || len(name) > 1 && name[1] == ':' { // also of Windows
		return name
	}
	return root + "/" + name
}

// inRoot is a name in a command as it would be seen from the root, which is also what "~" may stand for: see addNames. A name
// that leads out of the root stays as it is.
func inRoot(root, name string) string {
	if tail, ok := strings.CutPrefix(name, "~/"); ok {
		name = tail
	}
	full := slashed(absolute(root, name))
	if root = slashed(root); within(root, full) && len(full) > len(root) {
		return strings.TrimPrefix(full[len(root):], "/")
	}
	return path.Clean(name)
}

// guarded says why a call is asked about whatever rule allows it; "" means that it is not. Of a command this is a help
// against accidents: a program can open files that its words do not tell.
func (p Policy) guarded(c Call, words command) string {
	secrets := p.Mode != ModeTrust || !p.TrustSecrets
	for _, name := range c.Paths {
		if pattern, ok := p.Secret(name); ok && secrets {
			return "secret file: " + shown(name) + " may hold keys (" + pattern + ")"
		}
	}
	for _, name := range slices.Concat(words.names, c.Leads) {
		written := name
		name = path.Clean(name)
		pattern, secret := p.Secret(name)
		if !secret {
			pattern, secret = p.Secret(inRoot(c.Root, written))
		}
		switch {
		case secret && secrets:
			return "secret file: the command names " + shown(name) + ", which may hold keys (" + pattern + ")"
		case inGit(name):
			return "the command names " + shown(name) + ", which belongs to git"
		case p.ours(absolute(c.Root, name)), p.oursAtHome(written):
			return "the command names " + shown(name) + ", which holds fermata's own data or configuration"
		}
	}
	return ""
}
