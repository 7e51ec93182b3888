package mcp

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"fermata/agent/permit"
	"fermata/tools"
	"fermata/tools/mcp/mcptest"
	"fermata/tools/workspace"
)

func TestMain(m *testing.M) {
	if mcptest.Main() {
		return
	}
	os.Exit(m.Run())
}

// bench is a root with servers.
type bench struct {
	t       *testing.T
	dir     string
	w       *workspace.Workspace
	servers *Servers
}

func newBench(t *testing.T, configs ...Config) *bench {
	t.Helper()
	b := &bench{t: t, dir: t.TempDir()}
	var err error
	if b.w, err = workspace.Open(b.dir, nil); err != nil {
		t.Fatal(err)
	}
	b.servers = New(Options{Configs: configs, Secrets: []string{"MINE"}, Version: "1"})
	t.Cleanup(func() {
		b.servers.Close()
		b.w.Close()
	})
	return b
}

// program is a server that is a program.
func program(t *testing.T, mode string) Config {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return Config{Name: "srv", Command: []string{exe}, Env: map[string]string{mcptest.Mode: mode, "GORACE": "atexit_sleep_ms=0"}}
}

// address is a server on HTTP.
func address(t *testing.T, seen func(*http.Request)) (Config, *httptest.Server) {
	t.Helper()
	handler := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return mcptest.Server("good") }, nil)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if seen != nil {
			seen(r)
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return Config{Name: "srv", URL: server.URL}, server
}

// both are a server as a program and one on HTTP.
func both(t *testing.T) map[string]Config {
	c, _ := address(t, nil)
	return map[string]Config{"a program": program(t, "good"), "an address": c}
}

func (b *bench) tools(ctx context.Context) (offered []tools.Tool, warnings []string) {
	b.t.Helper()
	return b.servers.Tools(ctx, b.dir)
}

// run runs a tool as the agent does, everything allowed.
func (b *bench) run(ctx context.Context, name, args string, progress func(string)) tools.Result {
	b.t.Helper()
	offered, warnings := b.tools(b.t.Context())
	i := slices.IndexFunc(offered, func(t tools.Tool) bool { return t.Name == name })
	if i < 0 {
		b.t.Fatalf("no tool %s among %d: %q", name, len(offered), warnings)
	}
	return b.call(ctx, offered[i], args, progress)
}

func (b *bench) call(ctx context.Context, t tools.Tool, args string, progress func(string)) tools.Result {
	b.t.Helper()
	raw := json.RawMessage(args)
	p := permit.Policy{Mode: permit.ModeTrust}.Decide(t.Ask(b.w, raw), permit.Grants{}).Permit
	r := t.Run(ctx, tools.Env{Workspace: b.w, Permit: p, Progress: progress}, raw)
	if r.Output == "" {
		b.t.Errorf("%s gave no output", t.Name)
	}
	return r
}

func (b *bench) file(name string) string { return filepath.Join(b.dir, name) }

// await waits until a file has a line.
func (b *bench) await(name, line string) {
	b.t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(20 * time.Second)
	for {
		if text, err := os.ReadFile(b.file(name)); err == nil && strings.Contains("\n"+string(text), "\n"+line+"\n") {
			return
		}
		select {
		case <-tick.C:
		case <-limit:
			b.t.Fatalf("%s has no line %q", name, line)
		}
	}
}

func names(offered []tools.Tool) (names []string) {
	for _, t := range offered {
		names = append(names, t.Name)
	}
	return names
}

// guards M4
func TestToolsAreOfferedInAFixedOrder(t *testing.T) {
	for kind, c := range both(t) {
		t.Run(kind, func(t *testing.T) {
			second := c
			second.Name, second.Tools, second.ReadOnly = "another", []string{"roots", "echo", "missing"}, []string{"echo"}
			b := newBench(t, c, second)
			offered, warnings := b.tools(t.Context())
			want := []string{"srv__contents", "srv__die", "srv__echo", "srv__environment", "srv__fail", "srv__fork", "srv__huge", "srv__late", "srv__progress", "srv__roots", "srv__wait", "another__echo", "another__roots"}
			if got := names(offered); !slices.Equal(got, want) {
				t.Errorf("\n got %q\nwant %q", got, want)
			}
			if !slices.Equal(warnings, []string{`the MCP server another: it has no tool "missing"`}) {
				t.Errorf("warnings: %q", warnings)
			}
			for _, o := range offered {
				if o.ReadOnly != (o.Name == "another__echo") {
					t.Errorf("%s: read-only is %v", o.Name, o.ReadOnly)
				}
			}
			again, warnings := b.tools(t.Context())
			for i := range again {
				if again[i].Description != offered[i].Description || string(again[i].Schema) != string(offered[i].Schema) {
					t.Errorf("%s is offered otherwise the second time", again[i].Name)
				}
			}
			if len(warnings) > 0 || len(again) != len(offered) {
				t.Errorf("the second time: %q, %q", names(again), warnings)
			}
		})
	}
}

func TestAToolIsCalled(t *testing.T) {
	for kind, c := range both(t) {
		t.Run(kind, func(t *testing.T) {
			b := newBench(t, c)
			for name, tt := range map[string]struct {
				tool, args string
				state      tools.State
				want       string
			}{
				"as it was asked":     {"srv__echo", `{"text":"a <b> & c","x":12345678901234567890}`, tools.Done, `echo: {"text":"a <b> & c","x":12345678901234567890}`},
				"without arguments":   {"srv__echo", ``, tools.Done, `echo: {}`},
				"an error of its own": {"srv__fail", `{}`, tools.Failed, "it did not work"},
				"an error of the protocol": {"srv__echo", `{"count":"many"}`, tools.Failed,
					"srv__echo: the MCP server srv answers with an error: json: cannot unmarshal string into Go struct field args.count of type int (code 0)"},
				"all kinds of content": {"srv__contents", `{}`, tools.Done, "a [31mred[0m text\n\n(an image, image/png, 1234 bytes: not shown)\n(sound, audio/wav, 5 bytes: not shown)\n" +
					"(a link to file:///a: a: a file of two lines)\nfile:///b:\nits text\n(the resource file:///c, application/x, 3 bytes: not shown)"},
				"the roots":           {"srv__roots", `{}`, tools.Done, fileURI(b.dir)},
				"arguments cut off":   {"srv__echo", `{"text":"a`, tools.Failed, "srv__echo: the arguments are no JSON object: unexpected end of JSON input; its arguments are a JSON object of this schema: "},
				"arguments of a list": {"srv__echo", `[]`, tools.Failed, "srv__echo: the arguments are no JSON object: json: cannot unmarshal array"},
			} {
				t.Run(name, func(t *testing.T) {
					r := b.run(t.Context(), tt.tool, tt.args, nil)
					if r.State != tt.state || !strings.HasPrefix(r.Output, tt.want) {
						t.Errorf("%s: %s", r.State, r.Output)
					}
				})
			}
		})
	}
}

func TestACallThatWasNotAskedAboutIsNotMade(t *testing.T) {
	b := newBench(t, program(t, "good"))
	offered, _ := b.tools(t.Context())
	i := slices.Index(names(offered), "srv__echo")
	tool, asked, made := offered[i], json.RawMessage(`{"text":"a"}`), json.RawMessage(`{"text":"b"}`)
	ask := tool.Ask(b.w, asked)
	if ask.ReadOnly || ask.Tool != "srv__echo" || ask.Summary != `srv__echo {"text":"a"}` {
		t.Errorf("the question is %+v", ask)
	}
	if d := (permit.Policy{Mode: permit.ModeEdit}).Decide(ask, permit.Grants{}); d.Verdict != permit.Ask {
		t.Errorf("mode edit decides %s", d.Verdict)
	}
	p := permit.Policy{Mode: permit.ModeTrust}.Decide(ask, permit.Grants{}).Permit
	if r := tool.Run(t.Context(), tools.Env{Workspace: b.w, Permit: p}, made); r.State != tools.Failed || r.Output != "srv__echo: permission denied" {
		t.Errorf("%s: %s", r.State, r.Output)
	}
	if r := tool.Run(t.Context(), tools.Env{Workspace: b.w, Permit: p}, asked); r.State != tools.Done {
		t.Errorf("%s: %s", r.State, r.Output)
	}
}

func TestAnAnswerIsBounded(t *testing.T) {
	for kind, c := range both(t) {
		t.Run(kind, func(t *testing.T) {
			b := newBench(t, c)
			b.servers.o.message = 256 << 10
			r := b.run(t.Context(), "srv__huge", `{"count":200000}`, nil)
			if r.State != tools.Done || len(r.Output) > outputHead+outputTail+100 || !strings.HasPrefix(r.Output, "first\n") || !strings.HasSuffix(r.Output, "last") ||
				!strings.Contains(r.Output, " bytes left out …)\n") || len(r.Full) < 200_000 {
				t.Errorf("%s: %d bytes, in full %d", r.State, len(r.Output), len(r.Full))
			}
			r = b.run(t.Context(), "srv__huge", `{"count":300000}`, nil)
			if r.State != tools.Failed || len(r.Output) > 2000 {
				t.Errorf("%s: %d bytes: %.500s", r.State, len(r.Output), r.Output)
			}
			if r := b.run(t.Context(), "srv__echo", `{}`, nil); r.State != tools.Done {
				t.Errorf("afterwards %s: %s", r.State, r.Output)
			}
		})
	}
}

func TestWhatIsKeptOfAnAnswerIsBounded(t *testing.T) {
	long := strings.Repeat("é", outputFull)
	output, full := cut(long)
	if len(output) > outputHead+outputTail+100 || len(full) > outputFull+100 || !strings.Contains(string(full[outputFull-10:]), "bytes more were not kept") ||
		strings.ContainsRune(output, '\uFFFD') {
		t.Errorf("%d bytes, in full %d", len(output), len(full))
	}
}

func TestProgressIsTold(t *testing.T) {
	for kind, c := range both(t) {
		t.Run(kind, func(t *testing.T) {
			b := newBench(t, c)
			var told atomic.Pointer[string]
			told.Store(new(string))
			over := false
			r := b.run(t.Context(), "srv__progress", `{"count":3}`, func(text string) {
				if over {
					t.Error("it was told after the call")
				}
				s := *told.Load() + text
				told.Store(&s)
			})
			over = true
			if r.Output != "all steps" || !strings.HasPrefix("step 1\nstep 2\nstep 3\n", *told.Load()) { // what comes with the result may be too late
				t.Errorf("%s, told %q", r.Output, *told.Load())
			}
		})
	}
}

// guards M6
func TestAServerIsGivenNoKeyThatItsConfigDoesNotName(t *testing.T) {
	t.Setenv("SOME_API_KEY", "hush")
	t.Setenv("MINE", "hush")
	t.Setenv("GIVEN_TOKEN", "given")
	t.Setenv("HOME", t.TempDir())
	c := program(t, "good")
	c.Env["ITS_TOKEN"] = "my ${GIVEN_TOKEN}!"
	b := newBench(t, c)
	r := b.run(t.Context(), "srv__environment", `{}`, nil)
	if strings.Contains(r.Output, "hush") || !strings.Contains(r.Output, "\nITS_TOKEN=my given!\n") || strings.Contains(r.Output, "GIVEN_TOKEN=given") {
		t.Error(r.Output)
	}
	if home, _ := os.UserHomeDir(); !strings.HasSuffix(r.Output, "\nin "+home) {
		t.Errorf("it runs elsewhere: %s", r.Output)
	}
	if got := c.Variables(); !slices.Equal(got, []string{"GIVEN_TOKEN"}) {
		t.Errorf("variables: %q", got)
	}
}

// guards M6
func TestHeadersGoToTheAddressAndNoOther(t *testing.T) {
	t.Setenv("MCP_TOKEN", "t0p")
	var wrong atomic.Int32
	c, _ := address(t, func(r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer t0p" {
			wrong.Add(1)
		}
	})
	c.Headers = map[string]string{"authorization": "Bearer ${MCP_TOKEN}"}
	b := newBench(t, c)
	if r := b.run(t.Context(), "srv__echo", `{}`, nil); r.State != tools.Done || wrong.Load() > 0 {
		t.Errorf("%s: %s; %d requests had no key", r.State, r.Output, wrong.Load())
	}
	var asked atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { asked.Add(1) }))
	defer other.Close()
	moved := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
	}))
	defer moved.Close()
	c.URL = moved.URL
	b = newBench(t, c)
	if offered, warnings := b.tools(t.Context()); len(offered) > 0 || len(warnings) != 1 || asked.Load() > 0 || strings.Contains(warnings[0], "t0p") {
		t.Errorf("%d tools, %q; the other one was asked %d times", len(offered), warnings, asked.Load())
	}
	t.Setenv("MCP_TOKEN", "")
	b = newBench(t, c)
	if _, warnings := b.tools(t.Context()); len(warnings) != 1 || !strings.HasSuffix(warnings[0], "header authorization: the variable MCP_TOKEN is not set") {
		t.Errorf("%q", warnings)
	}
}
