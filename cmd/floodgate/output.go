package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/floodgate-go/floodgate/policy"
)

// readPolicy reads a policy file.
func readPolicy(name string) ([]byte, error) { return readAtMost(name, policy.MaxBytes) }

// readAtMost reads a file of at most so many bytes. It may be a pipe, as a shell's
// <(command) is, and is not read to its end if it is longer.
func readAtMost(name string, most int64) ([]byte, error) {
	f, err := os.Open(name) //nolint:gosec // the user has named it
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it was read only
	text, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(text)) > most {
		err = fmt.Errorf("%s: has more than %d bytes: want at most so many", name, most)
	}
	return text, err
}

// checkOutput returns, before a long replay, an error that would keep its report from
// being written.
func checkOutput(name string) error {
	info, err := os.Stat(name)
	if err == nil && info.IsDir() {
		return fmt.Errorf("--output: %s is a folder: name a file in it", name)
	}
	if dir, err := os.Stat(filepath.Dir(name)); errors.Is(err, fs.ErrNotExist) || err == nil && !dir.IsDir() {
		return fmt.Errorf("--output: %s cannot be written: there is no folder %s", name, filepath.Dir(name))
	}
	return nil
}

// writeOutput calls write to fill the file that --output names. A regular file is
// written whole or not at all. A device or a named pipe is written to directly.
func writeOutput(name string, write func(io.Writer) error) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("--output: %s cannot be written: %w", name, cause(err))
		}
	}()
	target := name
	if followed, err := filepath.EvalSymlinks(name); err == nil {
		target = followed // a link stays a link
	}
	if info, err := os.Stat(target); err == nil && !info.Mode().IsRegular() {
		f, err := os.OpenFile(target, os.O_WRONLY, 0) //nolint:gosec // the user has named it
		if err != nil {
			return err
		}
		return errors.Join(write(f), f.Close())
	}
	f, err := os.CreateTemp(filepath.Dir(target), ".floodgate-*")
	if err != nil {
		return err
	}
	if err = errors.Join(write(f), f.Chmod(0o644), f.Close()); err == nil {
		if err = os.Rename(f.Name(), target); err == nil {
			return nil
		}
	}
	return errors.Join(err, os.Remove(f.Name()))
}

// cause returns an error without the name of the temporary file.
func cause(err error) error {
	var at *fs.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &at):
		return at.Err
	case errors.As(err, &link):
		return link.Err
	}
	return err
}
