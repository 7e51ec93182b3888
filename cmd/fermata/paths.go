package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// configPath is where the user's config file is: $XDG_CONFIG_HOME/fermata/config.toml, on macOS and Windows below the
// system's own folder.
func configPath() (string, error) {
	dir, err := userDir("XDG_CONFIG_HOME", ".config", os.UserConfigDir)
	return filepath.Join(dir, "config.toml"), err
}

// dataDir is where the database is: $XDG_DATA_HOME/fermata.
func dataDir() (string, error) {
	return userDir("XDG_DATA_HOME", filepath.Join(".local", "share"), localDir)
}

// stateDir is where files for editors to open and logs are: $XDG_STATE_HOME/fermata.
func stateDir() (string, error) {
	dir, err := userDir("XDG_STATE_HOME", filepath.Join(".local", "state"), localDir)
	if runtime.GOOS == "darwin" || runtime.GOOS == "windows" {
		if os.Getenv("XDG_STATE_HOME") == "" {
			dir = filepath.Join(dir, "state") // the system has one folder for both
		}
	}
	return dir, err
}

// userDir is fermata's folder below the one that an XDG variable names; a relative one is ignored, as the XDG
// specification says. Without the variable it is below the home folder, or the system's own where that is customary.
func userDir(variable, belowHome string, system func() (string, error)) (string, error) {
	if dir := os.Getenv(variable); filepath.IsAbs(dir) {
		return filepath.Join(dir, "fermata"), nil
	}
	if runtime.GOOS == "darwin" || runtime.GOOS == "windows" {
		dir, err := system()
		if err != nil {
			return "", fmt.Errorf("find the user's folder: %w", err)
		}
		return filepath.Join(dir, "fermata"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("find the user's folder: %w; set %s", err, variable)
	}
	return filepath.Join(home, belowHome, "fermata"), nil
}

// localDir is the folder for data that stays on this machine.
func localDir() (string, error) {
	if runtime.GOOS == "windows" {
		if dir := os.Getenv("LOCALAPPDATA"); dir != "" {
			return dir, nil
		}
	}
	return os.UserConfigDir()
}

// tilde shortens a path for people.
func tilde(path string) string {
	home, err := os.UserHomeDir()
	if err != nil || home == "" {
		return path
	}
	if rest, ok := strings.CutPrefix(path, filepath.Clean(home)+string(filepath.Separator)); ok {
		return "~" + string(filepath.Separator) + rest
	}
	return path
}
