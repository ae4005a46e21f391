package main

import (
	"fmt"
	"io"
	"os"

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
	if err != nil {
		return nil, err
	}
	if int64(len(text)) > most {
		return nil, fmt.Errorf("%s: has more than %d bytes: want at most so many", name, most)
	}
	return text, nil
}
