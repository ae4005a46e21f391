package httprequest

import (
	"errors"
	"io"
	"net/http"

	"github.com/floodgate-go/floodgate/core"
)

// keptBody is a request's body whose beginning has been read ahead. Read returns the whole
// body from the beginning, and an error at the place at which it occurred.
type keptBody struct {
	kept []byte // the bytes that were read ahead
	read int    // how many of kept Read has returned
	past bool   // Read has returned bytes after kept: they cannot be read again
	rest io.ReadCloser
	err  error // the error of rest after the bytes in kept
}

// head returns at most the first n bytes of the body.
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
	if len(b.kept) < n && !errors.Is(b.err, io.EOF) {
		return nil, b.err
	}
	return b.kept[:min(n, len(b.kept)):min(n, len(b.kept))], nil
}

// parsed reports whether a middleware has parsed the request's form. Handlers then read
// the fields of the http.Request and not the rest of the body.
func parsed(r *http.Request) bool { return len(r.PostForm) > 0 || r.MultipartForm != nil }

// missing reports whether the body is shorter than the request's header says, because a
// middleware has read from it. The lengths of a compressed body cannot be compared,
// because a middleware may have decompressed the body.
func (b *keptBody) missing(r *http.Request) bool {
	if b.past || !errors.Is(b.err, io.EOF) {
		return false
	}
	if len(b.kept) == 0 {
		return r.ContentLength != 0
	}
	return int64(len(b.kept)) < r.ContentLength && r.Header.Get("Content-Encoding") == ""
}

// Unread reports whether a request has a body that has not been received to its end.
func Unread(r *http.Request) bool {
	kept, ok := r.Body.(*keptBody)
	return r.ContentLength != 0 && (!ok || kept.err == nil)
}

// Read implements io.Reader. It returns the bytes that were read ahead and then the rest.
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

// Close closes the original body. It implements io.Closer.
func (b *keptBody) Close() error { return b.rest.Close() }
