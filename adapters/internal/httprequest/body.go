package httprequest

import (
	"errors"
	"io"
)

// keptBody is a request body of which a part has been read ahead. Its reader
// gets all of it, from the beginning, with the error where it came.
type keptBody struct {
	kept []byte // read ahead
	read int    // of these, given to the reader
	rest io.ReadCloser
	err  error // of rest, after kept
}

// head returns at most the first max bytes.
func (b *keptBody) head(max int) ([]byte, error) {
	for len(b.kept) < max && b.err == nil {
		if len(b.kept) == cap(b.kept) {
			longer := make([]byte, len(b.kept), min(max, 2*cap(b.kept)+512))
			copy(longer, b.kept)
			b.kept = longer
		}
		var n int
		n, b.err = b.rest.Read(b.kept[len(b.kept):min(cap(b.kept), max)])
		b.kept = b.kept[:len(b.kept)+n]
	}
	if len(b.kept) < max && b.err != nil && !errors.Is(b.err, io.EOF) {
		return nil, b.err
	}
	return b.kept[:min(max, len(b.kept)):min(max, len(b.kept))], nil
}

// Read implements io.Reader.
func (b *keptBody) Read(p []byte) (int, error) {
	if b.read < len(b.kept) {
		n := copy(p, b.kept[b.read:])
		b.read += n
		return n, nil
	}
	if b.err != nil {
		return 0, b.err
	}
	return b.rest.Read(p)
}

// Close implements io.Closer.
func (b *keptBody) Close() error { return b.rest.Close() }
