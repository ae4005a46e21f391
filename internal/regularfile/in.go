package regularfile

import (
	"fmt"
	"io"
	"os"
	"syscall"
)

// ReadIn is Read of a file in a folder or below it: no part of the path, and no
// symbolic link, may lead out of the folder. info describes the file as it was
// before it was read.
func ReadIn(folder, name string, most int64) (text []byte, info os.FileInfo, err error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, nil, err
	}
	defer root.Close() //nolint:errcheck // nothing depends on it
	if info, err = root.Stat(name); err != nil {
		return nil, nil, fmt.Errorf("in the folder %s: %w", folder, err)
	}
	if !info.Mode().IsRegular() {
		return nil, nil, notRegular(name, info)
	}
	// The file may have been replaced since: opening must not block.
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("in the folder %s: %w", folder, err)
	}
	defer f.Close() //nolint:errcheck // it was read only
	if info, err = f.Stat(); err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, nil, notRegular(name, info)
	}
	text, err = io.ReadAll(io.LimitReader(f, most+1))
	return text, info, err
}

// StatIn describes a file in a folder or below it, as ReadIn finds it.
func StatIn(folder, name string) (os.FileInfo, error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, err
	}
	defer root.Close() //nolint:errcheck // nothing depends on it
	return root.Stat(name)
}
