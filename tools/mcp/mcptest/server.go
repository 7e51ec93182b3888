// Package mcptest is an MCP server for tests, made with the official SDK. It is a good server, and a bad one where it is asked
// to be: by the variable [Mode] and by what its tools are given. Nothing but tests imports it.
package mcptest

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Mode is the variable by which a test has its own binary play a server on stdin and stdout: its value says how it behaves.
//
//	good     as it should
//	chatty   it says on its stdout what is no message, before and between messages
//	nonsense it says nothing else
//	deaf     it reads and never answers
//	broken   it complains and exits with status 1
//	shy      its list is empty at first; the tool "echo" comes with the first call of "grow"
//	stubborn it never answers, and goes on when its input has ended
//	raw      it is no SDK's: what it lists is what the variable [List] says, and what is called says its arguments' lines, as
//	         many times as they say, once the file that they name is there
const Mode = "MCPTEST_MODE"

// List is the variable that says what a raw server lists: the result of tools/list.
const List = "MCPTEST_LIST"

// Main plays a server until its input ends, if the environment says so. It reports whether it did.
func Main() bool {
	mode := os.Getenv(Mode)
	switch mode {
	case "":
		return false
	case "deaf":
		_, _ = io.Copy(io.Discard, os.Stdin)
		return true
	case "stubborn":
		for range time.Tick(time.Hour) {
		}
	case "raw":
		raw()
		return true
	case "nonsense":
		for {
			if _, err := fmt.Println("what?"); err != nil {
				return true
			}
		}
	case "broken":
		fmt.Fprintln(os.Stderr, "no \x1b[31mconfiguration\x1b[0m found")
		os.Exit(1)
	case "chatty":
		go func() { // ends with the process
			for tick := range time.Tick(5 * time.Millisecond) {
				_, _ = fmt.Printf("\n\n{\"it\": is %v\n", tick.Nanosecond())
			}
		}()
		fmt.Println("Welcome to the server!")
	}
	if err := Server(mode).Run(context.Background(), &sdk.StdioTransport{}); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return true
}

// raw answers with what a test wants said, whatever that is, and reads nothing meanwhile. In a line $id stands for the call's
// id and $n for the time; the line $exit ends it.
func raw() {
	for in := json.NewDecoder(os.Stdin); ; {
		var m struct {
			ID     json.RawMessage
			Method string
			Params struct {
				Arguments struct {
					args
					Lines []string
				}
			}
		}
		if in.Decode(&m) != nil {
			return
		}
		answer := func(result string) { fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", m.ID, result) }
		switch m.Method {
		case "initialize":
			answer(`{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"raw","version":"1"}}`)
		case "tools/list":
			list := os.Getenv(List)
			if list == "" {
				list = `{"tools":[{"name":"say","inputSchema":{"type":"object"}}]}`
			}
			answer(list)
		case "tools/call":
			a := m.Params.Arguments
			if a.Until != "" {
				write(a.File, "begun")
				await(a.Until)
			}
			for n := range max(1, a.Count) {
				for _, line := range a.Lines {
					if line == "$exit" {
						os.Exit(0)
					}
					if _, err := fmt.Println(strings.NewReplacer("$id", string(m.ID), "$n", strconv.Itoa(n)).Replace(line)); err != nil {
						return
					}
				}
			}
		}
	}
}

// Server is the server itself.
func Server(mode string) *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "mcptest", Version: "1"}, &sdk.ServerOptions{
		Capabilities: &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{ListChanged: true}},
	})
	if mode == "shy" {
		add(s, "grow", func(context.Context, *sdk.CallToolRequest, args) (*sdk.CallToolResult, error) {
			add(s, "echo", echo)
			return text("grown"), nil
		})
		return s
	}
	add(s, "echo", echo)
	add(s, "environment", environment)
	add(s, "die", die)
	add(s, "contents", contents)
	add(s, "huge", huge)
	add(s, "fail", fail)
	add(s, "wait", wait)
	add(s, "late", late)
	add(s, "progress", progress)
	add(s, "fork", fork)
	add(s, "roots", roots)
	return s
}

// args are what all tools take.
type args struct {
	Text  string `json:"text"`
	File  string `json:"file"`  // written when the tool has begun
	Until string `json:"until"` // a file: the tool goes on until it is there
	Count int    `json:"count"`
}

type handler func(ctx context.Context, r *sdk.CallToolRequest, a args) (*sdk.CallToolResult, error)

func add(s *sdk.Server, name string, do handler) {
	s.AddTool(&sdk.Tool{Name: name, Description: "It does " + name + ".",
		InputSchema: json.RawMessage(`{"type":"object","properties":{"text":{"type":"string"},"count":{"type":"integer"}}}`)},
		func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			var a args
			if err := json.Unmarshal(r.Params.Arguments, &a); err != nil {
				return nil, err
			}
			return do(ctx, r, a)
		})
}

func text(s string) *sdk.CallToolResult {
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: s}}}
}

func echo(_ context.Context, r *sdk.CallToolRequest, _ args) (*sdk.CallToolResult, error) {
	return text("echo: " + string(r.Params.Arguments)), nil
}

func environment(context.Context, *sdk.CallToolRequest, args) (*sdk.CallToolResult, error) {
	dir, err := os.Getwd()
	return text(strings.Join(os.Environ(), "\n") + "\nin " + dir), err
}

func die(_ context.Context, _ *sdk.CallToolRequest, a args) (*sdk.CallToolResult, error) {
	fmt.Fprintln(os.Stderr, "out of cheese")
	os.Exit(a.Count)
	return nil, nil
}

func contents(context.Context, *sdk.CallToolRequest, args) (*sdk.CallToolResult, error) {
	return &sdk.CallToolResult{Content: []sdk.Content{
		&sdk.TextContent{Text: "a \x1b[31mred\x1b[0m text\r\n"},
		&sdk.ImageContent{MIMEType: "image/png", Data: make([]byte, 1234)},
		&sdk.AudioContent{MIMEType: "audio/wav", Data: make([]byte, 5)},
		&sdk.ResourceLink{URI: "file:///a", Name: "a", Description: "a file\nof two lines"},
		&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "file:///b", Text: "its text"}},
		&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "file:///c", MIMEType: "application/x", Blob: []byte("abc")}},
	}}, nil
}

func huge(_ context.Context, _ *sdk.CallToolRequest, a args) (*sdk.CallToolResult, error) {
	return text("first\n" + strings.Repeat("0123456789abcde\n", a.Count/16) + "last"), nil
}

func fail(context.Context, *sdk.CallToolRequest, args) (*sdk.CallToolResult, error) {
	r := text("it did not work")
	r.IsError = true
	return r, nil
}

// wait goes on until it is cancelled.
func wait(ctx context.Context, _ *sdk.CallToolRequest, a args) (*sdk.CallToolResult, error) {
	write(a.File, "begun")
	<-ctx.Done()
	write(a.File, "cancelled")
	return nil, ctx.Err()
}

// late is told of nothing until a file is there.
func late(_ context.Context, _ *sdk.CallToolRequest, a args) (*sdk.CallToolResult, error) {
	write(a.File, "begun")
	await(a.Until)
	return text("done after all"), nil
}

// await waits until a file is there, or its folder is not there any more.
func await(name string) {
	for range time.Tick(5 * time.Millisecond) {
		_, err := os.Stat(name)
		if _, gone := os.Stat(filepath.Dir(name)); err == nil || gone != nil {
			return
		}
	}
}

func progress(ctx context.Context, r *sdk.CallToolRequest, a args) (*sdk.CallToolResult, error) {
	for i := range a.Count {
		if err := r.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{
			ProgressToken: r.Params.GetProgressToken(), Progress: float64(i + 1), Total: float64(a.Count), Message: "step " + strconv.Itoa(i+1),
		}); err != nil {
			return nil, err
		}
	}
	return text("all steps"), nil
}

// fork leaves a process behind that has a session and nothing of the server's.
func fork(_ context.Context, _ *sdk.CallToolRequest, a args) (*sdk.CallToolResult, error) {
	cmd := exec.Command("/bin/sh", "-c", `(setsid sh -c 'echo $$ >"$0"; exec sleep 600' "$0" </dev/null >/dev/null 2>&1 &)`, a.File)
	out, err := cmd.CombinedOutput()
	return text("forked " + string(out)), err
}

func roots(ctx context.Context, r *sdk.CallToolRequest, _ args) (*sdk.CallToolResult, error) {
	//lint:ignore SA1019 servers of the protocol that fermata speaks do
	list, err := r.Session.ListRoots(ctx, nil)
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	for _, root := range list.Roots {
		fmt.Fprintln(&b, root.URI)
	}
	return text(b.String()), nil
}

var writing sync.Mutex

// write appends a line to a file, for the test that waits for it.
func write(name, line string) {
	writing.Lock()
	defer writing.Unlock()
	if f, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err == nil {
		w := bufio.NewWriter(f)
		fmt.Fprintln(w, line)
		_ = w.Flush()
		f.Close()
	}
}
