package workspace

import (
	"io/fs"
	"os"
)

const openFlags = 0

// keepOwner does nothing: a new file inherits the folder's access rules.
func keepOwner(*os.File, fs.FileInfo) {}

// syncDir does nothing: folders cannot be flushed on Windows.
func syncDir(*os.File) {}
