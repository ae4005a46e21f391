// Package regularfile reads files that somebody has named in a configuration, in bounded time and
// memory.
package regularfile

import (
	"fmt"
	"io"
	"os"
	"syscall"
)

// Read returns the content of a file, at most one byte more than most, so that the caller can tell
// that the file is too long. It follows symbolic links, and reads regular files only: reading a
// named pipe would never end, and a device may do anything. The error names the file.
func Read(path string, most int64) ([]byte, error) {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = notRegular(path, info)
	}
	if err != nil {
		return nil, err
	}
	// The file may have been replaced since: opening must not block.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) //nolint:gosec // the caller has chosen the file
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it was read only
	if info, err = f.Stat(); err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, notRegular(path, info)
	}
	return io.ReadAll(io.LimitReader(f, most+1))
}

func notRegular(path string, info os.FileInfo) error {
	what := "neither a file nor a folder"
	switch mode := info.Mode(); {
	case mode.IsDir():
		what = "a folder"
	case mode&os.ModeNamedPipe != 0:
		what = "a named pipe"
	case mode&os.ModeSocket != 0:
		what = "a socket"
	case mode&os.ModeDevice != 0:
		what = "a device"
	}
	return fmt.Errorf("%s is %s: want a regular file", path, what)
}
