package workspace

import "golang.org/x/sys/unix"

func renameExclusive(fromFolder int, from string, toFolder int, to string) error {
	return unix.Renameat2(fromFolder, from, toFolder, to, unix.RENAME_NOREPLACE)
}
