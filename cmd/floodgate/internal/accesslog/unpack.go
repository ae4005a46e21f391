package accesslog

import (
	"bufio"
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
)

// maxWindow is how much memory a zstd-compressed log may require. zstd by
// default requires at most 128 MiB.
const maxWindow = 128 << 20

// foreign has the first bytes of files that cannot be read, with their kind and
// a hint.
var foreign = []struct{ magic, what, hint string }{
	{"\xfd7zXZ\x00", "is compressed by xz", "unpack it first: xz -dc LOG | floodgate replay FILE -"},
	{"\x04\x22\x4d\x18", "is compressed by lz4", "unpack it first: lz4 -dc LOG | floodgate replay FILE -"},
	{"\x1f\x9d", "is compressed by compress", "unpack it first: zcat LOG | floodgate replay FILE -"},
	{"PK\x03\x04", "is a zip archive", "unpack it first: unzip -p LOG | floodgate replay FILE -"},
	{"7z\xbc\xaf", "is a 7z archive", "unpack it first"},
	{"\xff\xfe", "is text in UTF-16", "convert it first: iconv -f UTF-16 -t UTF-8 LOG | floodgate replay FILE -"},
	{"\xfe\xff", "is text in UTF-16", "convert it first: iconv -f UTF-16 -t UTF-8 LOG | floodgate replay FILE -"},
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
func unpacked(r io.Reader) (io.ReadCloser, error) {
	b := bufio.NewReaderSize(r, 256<<10)
	head, err := b.Peek(512)
	if err != nil && !errors.Is(err, io.EOF) { // Peek has taken the error, and r need not return it again
		b = bufio.NewReader(io.MultiReader(bytes.NewReader(bytes.Clone(head)), failing{err}))
	}
	switch {
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		d, err := gzip.NewReader(b)
		return d, truncated(err)
	case bytes.HasPrefix(head, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		d, err := zstd.NewReader(b, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return nil, err
		}
		return d.IOReadCloser(), nil
	case bytes.HasPrefix(head, []byte("BZh")):
		return io.NopCloser(bzip2.NewReader(b)), nil
	case bytes.HasPrefix(head, []byte("\xef\xbb\xbf")): // a byte order mark
		_, _ = b.Discard(3) // Peek has read it
		return io.NopCloser(b), nil
	}
	for _, f := range foreign {
		if bytes.HasPrefix(head, []byte(f.magic)) {
			return nil, fmt.Errorf("%s (%s)", f.what, f.hint)
		}
	}
	if bytes.IndexByte(head, 0) >= 0 {
		return nil, fmt.Errorf("is not text (want a log in %s; it may be compressed with gzip, zstd or bzip2)", Formats)
	}
	return io.NopCloser(b), nil
}
