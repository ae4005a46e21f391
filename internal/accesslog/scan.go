package accesslog

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// MaxLine is the longest line that is read, in bytes. What is longer is given
// out cut, and will not parse as a rule.
const MaxLine = 1 << 20

// Lines calls each for every line of a log that is not empty, with its number,
// until that returns an error. A log that is compressed by gzip, zstd or bzip2 is
// read as what it was; any other that is not text is an error. The line is valid
// until each returns.
func Lines(r io.Reader, each func(number int, line []byte) error) error {
	plain, err := unpacked(r)
	if err != nil {
		return err
	}
	defer plain.Close() //nolint:errcheck // it was read only
	buffered := bufio.NewReaderSize(plain, 256<<10)
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
