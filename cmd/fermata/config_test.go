package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fermata/agent/permit"
)

var toolNames = []string{"read_file", "write_file", "edit_file", "run_command"}

// Each case is one file; want is the message behind the file's name, its line first.
func TestAWrongConfigIsNamedWithItsLine(t *testing.T) {
	for _, test := range []struct{ name, file, want string }{
		{"unknown table", "\n\n[provder.x]\nkind = \"openai\"\n", `3: unknown key "provder" (did you mean "providers"?)`},
		{"unknown key in a provider", "[providers.x]\nkind = \"ollama\"\nbase_ulr = \"http://a\"\n", `3: unknown key "base_ulr" in [providers.x] (did you mean "base_url"?)`},
		{"unknown key far from any", "[limits]\ncolour = 1\n", `2: unknown key "colour" in [limits]; there are: max_steps, tries, idle_timeout`},
		{"dotted key", "limits.max_step = 3\n", `1: unknown key "max_step" in [limits] (did you mean "max_steps"?)`},
		{"a key in the file", "[providers.deepseek]\nkey = \"sk-secret\"\n", `2: "key": a key does not belong in a file; name the variable that holds it (key_env = "…") or a program that prints it (key_command = ["…"])`},
		{"an api_key in the file", "[providers.deepseek]\napi_key = \"sk-secret\"\n", `2: "api_key": a key does not belong in a file; name the variable that holds it (key_env = "…") or a program that prints it (key_command = ["…"])`},
		{"not TOML", "model = \"deepseek/a\"\nlimits\n", `2: this is not TOML: expected '=' after key`},
		{"a text without its end", "[providers.deepseek]\nkey_env = \"sk-9f8e7d6c5b4a\n", `2: this is not TOML: basic strings cannot have new lines`},
		{"a text where tables must be", "check = \"vet\"\n", `1: check must be tables, each under a line [[check]]`},
		{"a list where tables must be", "[permissions]\nrule = [\"go test\"]\n", `2: permissions.rule must be tables, each under a line [[permissions.rule]]`},
		{"a text where a number must be", "[limits]\nmax_steps = \"many\"\n", `2: limits.max_steps must be a whole number`},
		{"a number where a text must be", "model = 3\n", `1: model must be a text in quotes`},
		{"a text where a list must be", "[permissions]\nmode = \"ask\"\nallow = \"write_file\"\n", `3: permissions.allow must be a list of texts, like ["a", "b"]`},
		{"bad durability", "durability = \"powr\"\n", `1: durability is "powr", which is not one of normal, power (did you mean "power"?)`},
		{"bad kind", "[providers.x]\nkind = \"deepsek\"\n", `2: kind is "deepsek", which is not one of deepseek, llamacpp, ollama, openai, openai-compatible, openrouter, rehearsal, vllm (did you mean "deepseek"?)`},
		{"no kind", "\n[providers.mine]\nbase_url = \"http://127.0.0.1:1/v1\"\n", `2: provider "mine" has no kind; add one of: deepseek, llamacpp, ollama, openai, openai-compatible, openrouter, rehearsal, vllm`},
		{"no address", "[providers.mine]\nkind = \"openai-compatible\"\n", `1: provider "mine" has no base_url, and kind "openai-compatible" has no default`},
		{"address without scheme", "[providers.x]\nkind = \"ollama\"\nbase_url = \"localhost:11434\"\n", `3: base_url is "localhost:11434"; it must begin with https:// or http://`},
		{"address without host", "[providers.x]\nkind = \"ollama\"\nbase_url = \"http:///v1\"\n", `3: base_url is "http:///v1", which names no host`},
		{"password in the address", "[providers.x]\nkind = \"ollama\"\nbase_url = \"http://me:hunter2@h/v1\"\n", `3: base_url holds a user name or password; use key_env or key_command`},
		{"key in the address", "[providers.x]\nkind = \"ollama\"\nbase_url = \"http://h/v1?key=hunter2\"\n", `3: base_url must not have a query or a fragment`},
		{"password in an address without scheme", "[providers.x]\nkind = \"ollama\"\nbase_url = \"me:hunter2@h/v1\"\n", `3: base_url holds a user name or password; use key_env or key_command`},
		{"key in an address without scheme", "[providers.x]\nkind = \"ollama\"\nbase_url = \"h/v1?key=hunter2\"\n", `3: base_url must not have a query or a fragment`},
		{"key as the address", "[providers.x]\nkind = \"ollama\"\nbase_url = \"sk-9f8e7d6c5b4a\"\n", `3: base_url is no address; it must begin with https:// or http://`},
		{"no URL", "[providers.x]\nkind = \"ollama\"\nbase_url = \"http://hunter2\\u0007/\"\n", `3: base_url is no URL`},
		{"two sources of a key", "[providers.deepseek]\nkey_env = \"A\"\nkey_command = [\"pass\"]\n", `3: provider "deepseek" has both key_env and key_command; keep one`},
		{"empty key command", "[providers.deepseek]\nkey_command = []\n", `2: key_command is empty; write the program and its arguments, like ["pass", "show", "deepseek"]`},
		{"key_env that is a sentence", "[providers.deepseek]\nkey_env = \"my key\"\n", `2: key_env must be the name of an environment variable, not the key itself`},
		{"key_env that is a key", "[providers.deepseek]\nkey_env = \"sk-9f8e7d6c5b4a\"\n", `2: key_env must be the name of an environment variable, not the key itself`},
		{"model of an unknown provider", "model = \"depseek/chat\"\n", `1: model "depseek/chat" names the provider "depseek", which is not configured (did you mean "deepseek"?); there are: deepseek, llamacpp, ollama, openai, openrouter, rehearsal, vllm`},
		{"model without provider", "model = \"gpt\"\n", `1: model "gpt" names no provider; write provider/model, with one of the providers deepseek, llamacpp, ollama, openai, openrouter, rehearsal, vllm`},
		{"model without name", "model = \"deepseek/\"\n", `1: model "deepseek/" names no model; write deepseek/ and the model's name`},
		{"bad duration", "[limits]\nidle_timeout = \"120\"\n", `2: idle_timeout is "120", which is no duration; write it like "120s" or "5m"`},
		{"no time at all", "[limits]\nidle_timeout = \"0s\"\n", `2: idle_timeout is "0s", which is no duration; write it like "120s" or "5m"`},
		{"no tries", "[limits]\ntries = 0\n", `2: tries is 0; it must be 1 (never try again) or more`},
		{"no steps", "[limits]\nmax_steps = 0\n", `2: max_steps is 0; it must be 1 or more`},
		{"bad mode", "[permissions]\nmode = \"readonly\"\n", `2: mode is "readonly", which is not one of read-only, ask, edit, trust (did you mean "read-only"?)`},
		{"the mode of before", "[permissions]\nmode = \"yes\"\n", `2: mode "yes" is called "trust"`},
		{"rule without a subject", "[[permissions.rule]]\ndecision = \"allow\"\n", `1: a rule needs a tool, a command or a path`},
		{"rule without a decision", "[[permissions.rule]]\ntool = \"write_file\"\n", `1: decision is ""; it must be allow, deny or ask`},
		{"rule with another decision", "[[permissions.rule]]\ntool = \"write_file\"\ndecision = \"alow\"\n", `3: decision is "alow"; it must be allow, deny or ask (did you mean "allow"?)`},
		{"rule of an unknown tool", "[[permissions.rule]]\ntool = \"run_command\"\ndecision = \"deny\"\n[[permissions.rule]]\ndecision = \"deny\"\ntool = \"writefile\"\n", `6: the rule names the tool "writefile", but there is no such tool (did you mean "write_file"?)`},
		{"rule of a compound command", "[[permissions.rule]]\ncommand = \"go test; ls\"\ndecision = \"allow\"\n", `2: command "go test; ls" cannot be the beginning of a command: it is more than one command`},
		{"rule of a command and a path", "[[permissions.rule]]\ncommand = \"ls\"\npath = \"docs\"\ndecision = \"allow\"\n", `3: a rule is about a command or about a path; make two rules of it`},
		{"rule of an absolute path", "[[permissions.rule]]\npath = \"/etc/**\"\ndecision = \"allow\"\n", `2: the pattern "/etc/**" must be relative to the workspace, like "docs/**"`},
		{"rule of a path outside", "[[permissions.rule]]\npath = \"../x\"\ndecision = \"allow\"\n", `2: the pattern "../x" leads out of the workspace; leave out its dots`},
		{"bad pattern of secrets", "[permissions]\nmode = \"ask\"\nsecrets = [\"a[\"]\n", `3: the pattern "a[" is malformed: it is empty, or a bracket or brace is not closed`},
		{"unknown key of a rule", "[[permissions.rule]]\ntool = \"write_file\"\ndecision = \"deny\"\nfile = \"x\"\n", `4: unknown key "file" in [permissions.rule]; there are: tool, command, path, decision`},
		{"unknown tool", "[permissions]\nallow = [\"write_file\", \"writefile\"]\n", `2: allow names "writefile", but there is no such tool (did you mean "write_file"?)`},
		{"unknown key in a check", "[[check]]\nname = \"a\"\npatern = \"x\"\n", `1: check "a" has neither a command nor a pattern` + "\n/c.toml:" + `3: unknown key "patern" in [check] (did you mean "pattern"?)`},
		{"check without a name", "[[check]]\npattern = \"x\"\n", `1: a check needs a name`},
		{"two checks of one name", "[[check]]\nname = \"a\"\npattern = \"x\"\n[[check]]\npattern = \"y\"\nname = \"a\"\n", `6: there are two checks with the name "a"`},
		{"the second check", "[[check]]\nname = \"a\"\npattern = \"x\"\n\n[[check]]\nname = \"b\"\ncommand = [\"true\"]\ntimeout = \"5\"\n", `8: timeout is "5", which is no duration; write it like "30s" or "5m"`},
		{"bad on", "[[check]]\nname = \"a\"\npattern = \"x\"\non = \"edit\"\n", `4: on is "edit", which is not one of answer, edits (did you mean "edits"?)`},
		{"bad pattern", "[[check]]\nname = \"a\"\npattern = [\"secrets\", \"(\"]\n", `3: pattern "(" is neither a known name (secrets) nor a regular expression: error parsing regexp: missing closing ): ` + "`(`"},
		{"pattern that matches all", "[[check]]\nname = \"a\"\npattern = \"x*\"\n", `3: pattern "x*" matches everything`},
		{"command and pattern", "[[check]]\nname = \"a\"\ncommand = \"true\"\npattern = \"x\"\n", `4: check "a" has both a command and a pattern; make two checks of it`},
		{"command in the workspace", "[[check]]\nname = \"a\"\ncommand = [\"./check.sh\"]\n", `3: command begins with "./check.sh"; name a program on PATH or give its whole path`},
		{"command that is a number", "[[check]]\nname = \"a\"\ncommand = 3\n", `3: check.command must be a text in quotes, run by the shell, or a list of texts: the program and its arguments`},
		{"hold that is a text", "[[check]]\nname = \"a\"\npattern = \"x\"\nhold = \"yes\"\n", `4: check.hold must be true or false`},
		{"sandbox that is a word", "[run]\nsandbox = \"if-availble\"\n", `2: sandbox is "if-availble"; it must be true, false or "if-available" (did you mean "if-available"?)`},
		{"sandbox that is a number", "[run]\nsandbox = 1\n", `2: sandbox must be true, false or "if-available"`},
		{"unknown key in run", "[run]\nsandbx = true\n", `2: unknown key "sandbx" in [run] (did you mean "sandbox"?)`},
		{"MCP server without a name", "[[mcp]]\ncommand = [\"x\"]\n", `1: an MCP server needs a name`},
		{"MCP server without all", "[[mcp]]\nname = \"a\"\n", `1: MCP server "a" has neither a command nor a url`},
		{"two MCP servers of one name", "[[mcp]]\nname = \"a\"\ncommand = [\"x\"]\n[[mcp]]\nname = \"a\"\nurl = \"https://h/\"\n", `5: there are two MCP servers with the name "a"`},
		{"MCP address with a key", "[[mcp]]\nname = \"a\"\nurl = \"https://h/?key=x\"\n", `3: url must not have a query or a fragment`},
		{"key in an MCP header", "[[mcp]]\nname = \"a\"\nurl = \"https://h\"\nheaders = { Authorization = \"Bearer x\" }\n", `4: Authorization: a key does not belong in a file; name the variable that holds it, like "Bearer ${MY_TOKEN}"`},
		{"key in an MCP variable", "[[mcp]]\nname = \"a\"\ncommand = [\"x\"]\nenv = { A_TOKEN = \"x\" }\n", `4: A_TOKEN: a key does not belong in a file; name the variable that holds it: A_TOKEN = "${A_TOKEN}"`},
		{"MCP header of the protocol", "[[mcp]]\nname = \"a\"\nurl = \"https://h\"\nheaders = { mcp-session-id = \"x\" }\n", `4: the header "mcp-session-id" is fermata's own`},
		{"MCP timeout", "[[mcp]]\nname = \"a\"\ncommand = [\"x\"]\nstart_timeout = \"5\"\n", `4: start_timeout is "5", which is no duration; write it like "30s" or "5m"`},
		{"tool of an unknown MCP server", "[permissions]\nallow = [\"a__x\", \"b__x\"]\n[[mcp]]\nname = \"a\"\ncommand = [\"x\"]\n", `2: allow names "b__x", but there is no such tool (did you mean "a__x"?)`},
		{"inline table", "providers = { x = { kind = \"olama\" } }\n", `1: kind is "olama", which is not one of deepseek, llamacpp, ollama, openai, openai-compatible, openrouter, rehearsal, vllm (did you mean "ollama"?)`},
		{"provider name with a slash", "[providers.\"a/b\"]\nkind = \"ollama\"\n", `1: a provider cannot be called "a/b": models are written provider/model`},
		{"all of it at once, by line", "model = \"x/y\"\ndurability = \"no\"\n[limits]\nsteps = 3\n",
			"1: model \"x/y\" names the provider \"x\", which is not configured; there are: deepseek, llamacpp, ollama, openai, openrouter, rehearsal, vllm\n" +
				"/c.toml:2: durability is \"no\", which is not one of normal, power\n" +
				"/c.toml:4: unknown key \"steps\" in [limits]; there are: max_steps, tries, idle_timeout"},
	} {
		_, err := parseConfig("/c.toml", []byte(test.file), toolNames)
		if err == nil {
			t.Errorf("%s: no error, want %q", test.name, test.want)
			continue
		}
		if got := strings.TrimPrefix(err.Error(), "/c.toml:"); got != test.want {
			t.Errorf("%s:\n got %s\nwant %s", test.name, got, test.want)
		}
		for _, secret := range []string{"sk-secret", "hunter2", "sk-9f8e7d6c5b4a"} {
			if strings.Contains(err.Error(), secret) {
				t.Errorf("%s: the message holds the key: %v", test.name, err)
			}
		}
	}
}

func TestAGoodConfigIsReadWhole(t *testing.T) {
	file := "\xef\xbb\xbf" + `model = "mine/big/one"
durability = "power"
[providers.mine]
kind = "vllm"
base_url = "https://gpu.example/v1"
key_command = ["pass", "show", "mine"]
[providers.deepseek]
[limits]
max_steps = 7
idle_timeout = "90s"
[permissions]
mode = "read-only"
allow = ["write_file"]
`
	c, err := parseConfig("c.toml", []byte(file), toolNames)
	if err != nil {
		t.Fatal(err)
	}
	s, err := resolve(c, "", "", func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	p := s.provider("mine", func(string) string { return "" })
	if s.model != "mine/big/one" || p.kind != "vllm" || p.baseURL != "https://gpu.example/v1" || len(p.keyCommand) != 3 ||
		p.idle != 90*time.Second || c.Limits.MaxSteps != 7 || c.Durability != "power" || s.policy.Mode != permit.ModeReadOnly || len(s.policy.Rules) != 1 {
		t.Errorf("got %+v and %+v", s, p)
	}
	if name, model := splitModel(s.model); name != "mine" || model != "big/one" {
		t.Errorf("the model is taken apart into %q and %q", name, model)
	}
	if p := s.provider("deepseek", func(string) string { return "" }); p.baseURL != "https://api.deepseek.com/v1" || p.keyEnv != "DEEPSEEK_API_KEY" || !p.keyNeeded {
		t.Errorf("the defaults of deepseek are %+v", p)
	}
}

func TestAFlagGoesBeforeTheEnvironmentAndThatBeforeTheFile(t *testing.T) {
	for _, test := range []struct {
		name, file, flag string
		env              map[string]string
		want             string
	}{
		{"nothing at all", "", "", nil, "rehearsal/rehearsal"},
		{"flag", "model = \"ollama/a\"\n", "vllm/b", map[string]string{"FERMATA_MODEL": "ollama/c"}, "vllm/b"},
		{"environment", "model = \"ollama/a\"\n", "", map[string]string{"FERMATA_MODEL": "ollama/c", "DEEPSEEK_API_KEY": "k"}, "ollama/c"},
		{"file", "model = \"ollama/a\"\n", "", map[string]string{"DEEPSEEK_API_KEY": "k"}, "ollama/a"},
		{"the first provider that has a default", "[providers.vllm]\n[providers.d]\nkind = \"deepseek\"\n", "", nil, "d/deepseek-chat"},
		{"a key", "", "", map[string]string{"OPENAI_API_KEY": "k"}, "openai/gpt-5.2"},
		{"two keys", "", "", map[string]string{"OPENAI_API_KEY": "k", "DEEPSEEK_API_KEY": "k"}, "deepseek/deepseek-chat"},
		{"the third key", "", "", map[string]string{"OPENROUTER_API_KEY": "k"}, "openrouter/openrouter/auto"},
		{"the short name of the built-in model", "", "rehearsal", nil, "rehearsal"},
	} {
		c, err := parseConfig("c.toml", []byte(test.file), toolNames)
		if err != nil {
			t.Fatal(test.name, err)
		}
		s, err := resolve(c, test.flag, "", func(name string) string { return test.env[name] })
		if err != nil || s.model != test.want {
			t.Errorf("%s: %+v, %v; want %s", test.name, s, err, test.want)
		}
	}
}

func TestTheEnvironmentSaysWhereServersAre(t *testing.T) {
	for _, test := range []struct{ provider, variable, value, want string }{
		{"openai", "OPENAI_BASE_URL", "http://127.0.0.1:9/v1", "http://127.0.0.1:9/v1"},
		{"ollama", "OLLAMA_HOST", "0.0.0.0", "http://127.0.0.1:11434/v1"},
		{"ollama", "OLLAMA_HOST", "box:8000", "http://box:8000/v1"},
		{"ollama", "OLLAMA_HOST", "https://box/", "https://box:11434/v1"},
		{"ollama", "OLLAMA_HOST", "[::1]:80", "http://[::1]:80/v1"},
		{"ollama", "OLLAMA_HOST", "", "http://127.0.0.1:11434/v1"},
		{"vllm", "OLLAMA_HOST", "box", "http://127.0.0.1:8000/v1"},
	} {
		s := &settings{config: &config{}}
		p := s.provider(test.provider, func(name string) string {
			if name == test.variable {
				return test.value
			}
			return ""
		})
		if p.baseURL != test.want {
			t.Errorf("%s with %s=%s is at %s, want %s", test.provider, test.variable, test.value, p.baseURL, test.want)
		}
	}
}

func TestAKeyCommandRunsOnceAndItsOutputIsInNoError(t *testing.T) {
	counter := filepath.Join(t.TempDir(), "runs")
	k := newKeySource(provider{name: "p", keyCommand: []string{"sh", "-c", `echo run >> "$1"; echo sk-secret; echo a note`, "sh", counter}}, "c.toml")
	for range 2 {
		if key, err := k.Key(t.Context()); key != "sk-secret" || err != nil {
			t.Fatalf("the key is %q, %v", key, err)
		}
	}
	if runs, _ := os.ReadFile(counter); string(runs) != "run\n" {
		t.Errorf("it ran as often as %q says", runs)
	}
	for name, script := range map[string]string{
		"fails":       "echo sk-secret; echo sk-secret is locked >&2; exit 3",
		"is silent":   "true",
		"is no key":   "echo sk secret",
		"takes long":  "sleep 60 & sleep 60",
		"leaves pipe": "sleep 60 & exit 4",
	} {
		k := newKeySource(provider{name: "p", keyCommand: []string{"sh", "-c", script}}, "c.toml")
		k.timeout = 200 * time.Millisecond
		key, err := k.Key(t.Context())
		if err == nil || key != "" || strings.Contains(err.Error(), "secret") {
			t.Errorf("a command that %s gives %q, %v", name, key, err)
		}
	}
}

func TestAMissingKeyIsSaidBeforeAnythingIsSent(t *testing.T) {
	t.Setenv("NO_SUCH_KEY", "")
	k := newKeySource(provider{name: "deepseek", keyEnv: "NO_SUCH_KEY", keyNeeded: true}, "/etc/c.toml")
	_, err := k.Key(t.Context())
	if err == nil || err.Error() != "NO_SUCH_KEY is not set; set it, or give [providers.deepseek] a key_env or key_command in /etc/c.toml" {
		t.Errorf("got %v", err)
	}
	for want, p := range map[string]provider{ // a key where its name belongs
		"the variable that its key_env names is not set; set it, or give [providers.mine] a key_env or key_command in /etc/c.toml": {name: "mine", keyEnv: "gsk_9f8e7d6c5b4a", keyNeeded: true},
		"the first word of key_command is no program that can be found; see [providers.mine] in /etc/c.toml":                       {name: "mine", keyCommand: []string{"gsk_9f8e7d6c5b4a"}},
	} {
		if _, err := newKeySource(p, "/etc/c.toml").Key(t.Context()); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	k = newKeySource(provider{name: "local", keyEnv: "NO_SUCH_KEY"}, "")
	if key, err := k.Key(t.Context()); key != "" || err != nil {
		t.Errorf("a key that is not needed: %q, %v", key, err)
	}
}
