package main

import (
	"context"
	"runtime"
	"time"
)

// sandbox says what confines commands.
func (d *doctor) sandbox() {
	s, err := d.app.settings()
	if err != nil {
		return // said by config
	}
	root, err := d.app.workspace()
	if err != nil {
		d.bad("sandbox", "%v", err)
		return
	}
	box := s.config.Run.sandbox(d.app.protected())
	switch {
	case box == nil && runtime.GOOS == "linux":
		d.ok("sandbox", "none; [run] sandbox = true confines commands")
	case box == nil: // there is none to be had
	case box.Ready(root) == nil:
		d.ok("sandbox", "%s", box.Says(root))
	case box.Required:
		d.bad("sandbox", "%v", box.Ready(root))
	default:
		d.note("sandbox", "%s", box.Says(root))
	}
}

// mcp starts each MCP server and says what it offers.
func (d *doctor) mcp(ctx context.Context) {
	s, err := d.app.settings()
	if err != nil || len(s.config.MCP) == 0 {
		return
	}
	root, err := d.app.workspace()
	if err != nil {
		d.bad("mcp", "%v", err)
		return
	}
	servers := s.newMCPServers(d.app.logger(d.app.err))
	defer servers.Close()
	for _, st := range servers.Check(ctx, root) {
		if st.Err != nil {
			d.bad("mcp", "%s: %v", st.Name, st.Err)
			continue
		}
		d.ok("mcp", "%s offers %s (%s)", st.Name, plural(len(st.Tools), "tool"), st.Took.Round(time.Millisecond))
		for _, w := range st.Warnings {
			d.note("mcp", "%s", w)
		}
	}
}
