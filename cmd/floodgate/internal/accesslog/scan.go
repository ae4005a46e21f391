package accesslog

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
)

// ErrTruncated is the error of a compressed log that ends before its end.
var ErrTruncated = errors.New("ends in the middle: it is truncated or still being written")

// MaxLine is the length of the longest line that is read, in bytes. A longer
// line is cut, and usually cannot be parsed then.
const MaxLine = 1 << 20

// Lines calls each for every line of a log that is not empty, with its number,
// until each returns an error. A log that is compressed by gzip is decompressed;
// any other log that is not text is an error. If a compressed log is truncated,
// its whole lines are read, and the error is ErrTruncated.
// The line is valid until each returns.
func Lines(r io.Reader, each func(number int, line []byte) error) error {
	plain, err := unpacked(r)
	if err != nil {
		return err
	}
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
			return nil //nolint:nilerr // it is the end
		}
	}
}

// foreign has the first bytes of files that cannot be read, with their kind and the
// command that makes them text.
var foreign = []struct{ magic, what, command string }{
	{"\x28\xb5\x2f\xfd", "is compressed by zstd", "zstd -dc LOG"},
	{"BZh", "is compressed by bzip2", "bzip2 -dc LOG"},
	{"\xfd7zXZ\x00", "is compressed by xz", "xz -dc LOG"},
	{"\x04\x22\x4d\x18", "is compressed by lz4", "lz4 -dc LOG"},
	{"PK\x03\x04", "is a zip archive", "unzip -p LOG"},
	{"\xff\xfe", "is text in UTF-16", "iconv -f UTF-16 -t UTF-8 LOG"},
	{"\xfe\xff", "is text in UTF-16", "iconv -f UTF-16 -t UTF-8 LOG"},
}

// truncated returns ErrTruncated for the error of a log that has no end.
func truncated(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return ErrTruncated
	}
	return err
}

// failing is a reader that fails.
type failing struct{ err error }

// Read implements [io.Reader].
func (f failing) Read([]byte) (int, error) { return 0, f.err }

// unpacked returns the text of a log.
func unpacked(r io.Reader) (io.Reader, error) {
	b := bufio.NewReaderSize(r, 256<<10)
	head, err := b.Peek(512)
	if err != nil && !errors.Is(err, io.EOF) { // Peek has taken the error, and r need not return it again
		b = bufio.NewReader(io.MultiReader(bytes.NewReader(bytes.Clone(head)), failing{err}))
	}
	switch {
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		d, err := gzip.NewReader(b)
		return d, truncated(err)
	case bytes.HasPrefix(head, []byte("\xef\xbb\xbf")): // a byte order mark
		_, _ = b.Discard(3) // Peek has read it
		return b, nil
	}
	for _, f := range foreign {
		if bytes.HasPrefix(head, []byte(f.magic)) {
			return nil, fmt.Errorf("%s (unpack it first: %s | floodgate replay FILE -)", f.what, f.command)
		}
	}
	if bytes.IndexByte(head, 0) >= 0 {
		return nil, fmt.Errorf("is not text (want a log in %s; it may be compressed with gzip)", Formats)
	}
	return b, nil
}
