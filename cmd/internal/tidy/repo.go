package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// repo is what the checks look at.
type repo struct {
	files    []file
	packages []pkg
}

// file is a file that belongs to the repository: git knows it, or would add it.
type file struct {
	path string // slash-separated, relative to the repository
	data []byte
}

// pkg is a package of this module with what its files import themselves, on any of the systems we build for.
type pkg struct {
	path    string   // import path
	imports []string // of the package
	tests   []string // of its tests, in the package and beside it
}

// systems are the values of GOOS that we build for. Files of the others are not compiled, and so not listed, on any one.
var systems = []string{"linux", "darwin", "windows"}

// readRepo reads the repository around the working directory.
func readRepo(ctx context.Context) (repo, error) {
	root, err := findRoot()
	if err != nil {
		return repo{}, err
	}
	files, err := readFiles(ctx, root)
	if err != nil {
		return repo{}, err
	}
	packages, err := listPackages(ctx, root)
	if err != nil {
		return repo{}, err
	}
	return repo{files: files, packages: packages}, nil
}

// findRoot returns the nearest folder, from the working directory upwards, that has a go.mod.
func findRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find go.mod: %w", err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("find go.mod: not in a Go module")
		}
		dir = parent
	}
}

// readFiles reads the files of the repository at root, in order of their paths. Links are left alone.
func readFiles(ctx context.Context, root string) ([]file, error) {
	paths, err := gitFiles(ctx, root)
	if err != nil {
		// An unpacked archive, a machine without git, a clone of another user: all files are ours then.
		if paths, err = walkFiles(root); err != nil {
			return nil, fmt.Errorf("list files: %w", err)
		}
	}
	var files []file
	for _, path := range paths {
		name := filepath.Join(root, filepath.FromSlash(path))
		info, err := os.Lstat(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue // deleted, but git still has it
		}
		if err != nil {
			return nil, fmt.Errorf("read files: %w", err)
		}
		if !info.Mode().IsRegular() {
			continue
		}
		data, err := os.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("read files: %w", err)
		}
		files = append(files, file{path: path, data: data})
	}
	return files, nil
}

// gitFiles lists what git tracks and what it would add, without what it ignores.
func gitFiles(ctx context.Context, root string) ([]string, error) {
	out, err := run(ctx, root, nil, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	if err != nil {
		return nil, err
	}
	paths := strings.FieldsFunc(string(out), func(r rune) bool { return r == 0 })
	slices.Sort(paths)
	return slices.Compact(paths), nil
}

// walkFiles lists all files but those that .gitignore names.
func walkFiles(root string) ([]string, error) {
	var paths []string
	err := fs.WalkDir(os.DirFS(root), ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case !d.IsDir():
			paths = append(paths, path)
		case path == ".git" || path == ".cache" || path == "bin" || d.Name() == "node_modules":
			return fs.SkipDir
		}
		return nil
	})
	return paths, err
}

// listPackages asks the go command for the packages of the module at root and merges what they import on each system.
// Packages that do not build are listed as well: what they import is known even so.
func listPackages(ctx context.Context, root string) ([]pkg, error) {
	merged := map[string]*pkg{}
	for _, system := range systems {
		out, err := run(ctx, root, []string{"GOOS=" + system, "CGO_ENABLED=0"},
			"go", "list", "-e", "-json=ImportPath,Imports,TestImports,XTestImports", "./...")
		if err != nil {
			return nil, fmt.Errorf("list packages: %w", err)
		}
		for dec := json.NewDecoder(bytes.NewReader(out)); ; {
			var listed struct {
				ImportPath                         string
				Imports, TestImports, XTestImports []string
			}
			if err := dec.Decode(&listed); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return nil, fmt.Errorf("list packages: read the output of go list: %w", err)
			}
			p := merged[listed.ImportPath]
			if p == nil {
				p = &pkg{path: listed.ImportPath}
				merged[p.path] = p
			}
			p.imports = append(p.imports, listed.Imports...)
			p.tests = append(append(p.tests, listed.TestImports...), listed.XTestImports...)
		}
	}
	var packages []pkg
	for _, p := range merged {
		slices.Sort(p.imports)
		slices.Sort(p.tests)
		packages = append(packages, pkg{p.path, slices.Compact(p.imports), slices.Compact(p.tests)})
	}
	slices.SortFunc(packages, func(a, b pkg) int { return strings.Compare(a.path, b.path) })
	return packages, nil
}

// run returns what a command prints. The error has what it said on stderr.
func run(ctx context.Context, dir string, env []string, name string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = append(cmd.Environ(), env...)
	out, err := cmd.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return nil, fmt.Errorf("%s: %w: %s", cmd, err, bytes.TrimSpace(exit.Stderr))
	} else if err != nil {
		return nil, fmt.Errorf("%s: %w", cmd, err)
	}
	return out, nil
}
