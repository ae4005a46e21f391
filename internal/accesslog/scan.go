package accesslog

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
)

// MaxLine is the longest line that is read, in bytes. What is longer is given
// out cut, and will not parse as a rule.
const MaxLine = 1 << 20

// Lines calls each for every line of a log that is not empty, with its number,
// until that returns an error. A log that is compressed by gzip is read as what
// it was. The line stands until each returns.
func Lines(r io.Reader, each func(number int, line []byte) error) error {
	buffered := bufio.NewReaderSize(r, 256<<10)
	if magic, err := buffered.Peek(2); err == nil && bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		unzipped, err := gzip.NewReader(buffered)
		if err != nil {
			return err
		}
		buffered = bufio.NewReaderSize(unzipped, 256<<10)
	}
	var long []byte
	for number := 1; ; number++ {
		line, err := buffered.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			long = append(long[:0], line...)
			for errors.Is(err, bufio.ErrBufferFull) {
				line, err = buffered.ReadSlice('\n')
				long = append(long, line[:min(len(line), MaxLine-len(long))]...)
			}
			line = long
		}
		if line = bytes.TrimRight(line, "\r\n"); len(line) > 0 {
			if err := each(number, line); err != nil {
				return err
			}
		}
		switch {
		case err == nil:
		case errors.Is(err, io.EOF):
			return nil
		default:
			return err
		}
	}
}
