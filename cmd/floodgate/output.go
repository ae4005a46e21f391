package main

import (
	"bytes"
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

// writeOutput fills the file that --output names. The report is made before the file
// is opened, so that a report that fails leaves a former one as it was.
func writeOutput(name string, write func(io.Writer) error) error {
	var report bytes.Buffer
	err := write(&report)
	if err == nil {
		err = os.WriteFile(name, report.Bytes(), 0o644) //nolint:gosec // others may read a report
	}
	if err != nil {
		return fmt.Errorf("--output: %w", err)
	}
	return nil
}
