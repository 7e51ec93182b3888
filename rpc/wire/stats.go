package wire

import "fermata/transcript"

// StatsParams ask for the metrics of a workspace. All may be absent.
type StatsParams struct {
	// Workspace keeps to sessions with that root: an absolute path or file URI. Absent: all workspaces.
	Workspace string `json:"workspace,omitzero"`
}

// StatsResult are the metrics X1 to X4, as transcript/stats.go documents them, computed on this machine when they are asked
// for. Definitions says for each figure, by the name of its member, what was counted: show it beside the figure. A share
// of fewer than minCases cases tells nothing: show that it is too few instead.
type StatsResult struct {
	// Stats are the figures.
	transcript.Stats
}
