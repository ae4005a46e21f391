package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// checkOutput returns, before a long replay, an error that would keep its
// report from being written.
func checkOutput(name string) error {
	if info, err := os.Stat(name); err == nil && info.IsDir() {
		return fmt.Errorf("--output: %s is a folder: name a file in it", name)
	}
	info, err := os.Stat(filepath.Dir(name))
	if err == nil && !info.IsDir() {
		err = syscall.ENOTDIR
	}
	if err != nil {
		return outputError(name, err)
	}
	return nil
}

// writeOutput calls write to fill the file that --output names. A regular file
// is written whole or not at all. Anything else, such as a device or a named
// pipe, is written to directly.
func writeOutput(name string, write func(io.Writer) error) error {
	if target, err := filepath.EvalSymlinks(name); err == nil {
		name = target // a link stays a link
	}
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		f, err := os.OpenFile(name, os.O_WRONLY, 0) //nolint:gosec // the user has named it
		if err != nil {
			return outputError(name, err)
		}
		return errors.Join(write(f), f.Close())
	}
	f, err := os.CreateTemp(filepath.Dir(name), ".floodgate-*")
	if err != nil {
		return outputError(name, err)
	}
	err = errors.Join(write(f), f.Chmod(0o644), f.Close())
	if err == nil {
		if err = os.Rename(f.Name(), name); err == nil {
			return nil
		}
	}
	return errors.Join(outputError(name, err), os.Remove(f.Name()))
}

// outputError returns an error that tells why the file cannot be written, and
// what to do. It omits the name of the temporary file.
func outputError(name string, err error) error {
	cause, dir := err, filepath.Dir(name)
	var at *fs.PathError
	var link *os.LinkError
	if errors.As(err, &at) {
		cause = at.Err
	} else if errors.As(err, &link) {
		cause = link.Err
	}
	hint := "choose another place"
	if _, missing := os.Stat(dir); errors.Is(missing, fs.ErrNotExist) {
		hint = "make the folder first: mkdir -p " + dir
	} else if errors.Is(err, fs.ErrPermission) {
		hint = "choose a folder that you may write to"
	}
	return fmt.Errorf("--output: %s cannot be written: %w (%s)", name, cause, hint)
}
