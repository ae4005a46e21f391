package accesslog

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// ErrTruncated is the error of a compressed log that ends before its end.
var ErrTruncated = errors.New("ends in the middle: it is truncated or still being written")

// MaxLine is the length of the longest line that is read, in bytes. A longer
// line is cut, and usually cannot be parsed then.
const MaxLine = 1 << 20

// Lines calls each for every line of a log that is not empty, with its number,
// until each returns an error. A log that is compressed by gzip, zstd or bzip2
// is decompressed; any other log that is not text is an error. If a compressed
// log is truncated, its whole lines are read, and the error is ErrTruncated.
// The line is valid until each returns.
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
		if err != nil && !errors.Is(err, io.EOF) {
			return truncated(err) // what has been read of the line is not a line
		}
		if line = bytes.TrimRight(line, "\r\n"); len(line) > 0 {
			if err := each(number, line); err != nil {
				return err
			}
		}
		if err != nil {
			return nil
		}
	}
}
