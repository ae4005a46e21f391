package regularfile

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
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
		return nil, nil, within(folder, name, err)
	}
	if !info.Mode().IsRegular() {
		return nil, nil, notRegular(filepath.Join(folder, name), info)
	}
	// The file may have been replaced since: opening must not block.
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, within(folder, name, err)
	}
	defer f.Close() //nolint:errcheck // it was read only
	if info, err = f.Stat(); err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, nil, notRegular(filepath.Join(folder, name), info)
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
	info, err := root.Stat(name)
	if err != nil {
		return nil, within(folder, name, err)
	}
	return info, nil
}

// within returns an error of a file in a folder with the whole path.
func within(folder, name string, err error) error {
	if e := (*fs.PathError)(nil); errors.As(err, &e) {
		err = e.Err
	}
	return &fs.PathError{Op: "open", Path: filepath.Join(folder, name), Err: err}
}
