package workspace

import (
	"io/fs"
	"os"

	"golang.org/x/sys/windows"
)

const openFlags = 0

// links is how many names an open file has.
func links(f *os.File) int {
	var info windows.ByHandleFileInformation
	if err := windows.GetFileInformationByHandle(windows.Handle(f.Fd()), &info); err != nil {
		return 1
	}
	return int(info.NumberOfLinks)
}

// keepOwner does nothing: a new file inherits the folder's access rules.
func keepOwner(*os.File, fs.FileInfo) {}

// syncDir does nothing: folders cannot be flushed on Windows.
func syncDir(*os.File) {}
