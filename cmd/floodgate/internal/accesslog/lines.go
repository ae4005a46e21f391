package accesslog

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
)

// MaxLine is the length of the longest line, in bytes. A longer one is an error.
const MaxLine = 1 << 20

// Lines calls each with every line that is not empty, and its number, until each returns an error.
// It decompresses a log that is compressed by gzip. The line is valid until each returns.
func Lines(r io.Reader, each func(number int, line []byte) error) error {
	b := bufio.NewReaderSize(r, 64<<10)
	head, err := b.Peek(2)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	r = b
	if bytes.Equal(head, []byte{0x1f, 0x8b}) {
		if r, err = gzip.NewReader(b); err != nil {
			return err
		}
	}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, MaxLine+len("\r\n"))
	number := 0
	for lines.Scan() {
		number++
		if len(lines.Bytes()) == 0 {
			continue
		}
		if err := each(number, lines.Bytes()); err != nil {
			return err
		}
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return fmt.Errorf("line %d has more than %d bytes (want a log in %s)", number+1, MaxLine, Formats)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("ends in the middle: it is truncated or still being written: %w", err)
	default:
		return err
	}
}
