package httprequest

import (
	"errors"
	"io"
	"net/http"

	"github.com/floodgate-go/floodgate/core"
)

// keptBody is a request body of which a part has been read ahead. Its reader
// gets all of it, from the beginning, with the error where it came.
type keptBody struct {
	kept []byte // read ahead
	read int    // of these, given to the reader
	past bool   // the reader has read further than kept: what follows is lost
	rest io.ReadCloser
	err  error // of rest, after kept
}

// head returns at most the first n bytes.
func (b *keptBody) head(n int) ([]byte, error) {
	n = max(0, n)
	if n > len(b.kept) && b.past {
		return nil, core.ErrBodyRead
	}
	for len(b.kept) < n && b.err == nil {
		if len(b.kept) == cap(b.kept) {
			longer := make([]byte, len(b.kept), min(n, 2*cap(b.kept)+512))
			copy(longer, b.kept)
			b.kept = longer
		}
		var read int
		read, b.err = b.rest.Read(b.kept[len(b.kept):min(cap(b.kept), n)])
		b.kept = b.kept[:len(b.kept)+read]
	}
	if len(b.kept) < n && b.err != nil && !errors.Is(b.err, io.EOF) {
		return nil, b.err
	}
	return b.kept[:min(n, len(b.kept)):min(n, len(b.kept))], nil
}

// parsed reports whether somebody has parsed the request's form. What is left of
// the body then is not what handlers read: they find the fields in the request.
func parsed(r *http.Request) bool { return len(r.PostForm) > 0 || r.MultipartForm != nil }

// missing reports whether the body has ended before as much of it was there as
// the request's header says: somebody has read from it. The length of a
// compressed body is not the length of what a middleware has made of it.
func (b *keptBody) missing(r *http.Request) bool {
	if b.past || !errors.Is(b.err, io.EOF) {
		return false
	}
	if len(b.kept) == 0 {
		return r.ContentLength != 0
	}
	return int64(len(b.kept)) < r.ContentLength && r.Header.Get("Content-Encoding") == ""
}

// Unread says that a request has a body of which not all has been received.
func Unread(r *http.Request) bool {
	kept, ok := r.Body.(*keptBody)
	return r.ContentLength != 0 && (!ok || kept.err == nil)
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
	n, err := b.rest.Read(p)
	b.past = b.past || n > 0
	b.err = err
	return n, err
}

// Close implements io.Closer.
func (b *keptBody) Close() error { return b.rest.Close() }
