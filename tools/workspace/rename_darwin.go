package workspace

import "golang.org/x/sys/unix"

func renameExclusive(fromFolder int, from string, toFolder int, to string) error {
	return unix.RenameatxNp(fromFolder, from, toFolder, to, unix.RENAME_EXCL)
}
