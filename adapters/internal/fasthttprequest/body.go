package fasthttprequest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"

	"github.com/valyala/fasthttp"

	"github.com/floodgate-go/floodgate/core"
)

// Body implements core.Request. If the application streams bodies, Body reads
// the whole body into memory, up to the application's BodyLimit: see readStream.
func (r *Request) Body(n int) ([]byte, error) {
	if n <= 0 {
		return nil, nil // nothing to read
	}
	req := &r.fast.Request
	if err, ok := r.fast.UserValue(streamKey{}).(error); ok {
		return nil, err
	}
	if req.IsBodyStream() {
		if err := r.readStream(); err != nil {
			r.fast.SetUserValue(streamKey{}, err)
			r.fast.SetConnectionClose() // the rest of the body must not be read as a request
			return nil, err
		}
	}
	b := req.Body() // as it was received: Ctx.Body would decompress it
	if err := r.checkRewritten(b); err != nil {
		return nil, err
	}
	return b[:min(n, len(b))], nil
}

// streamKey is the key of the error of readStream in Fiber's locals.
type streamKey struct{}

// readStream reads the request's stream into memory and makes the text the request's
// body. It cannot put a reader around the stream: when a request gets another body,
// fasthttp reuses the request's stream for another request.
func (r *Request) readStream() error {
	req := &r.fast.Request
	limit := r.major.Bodies(r.fiber).Limit
	if limit <= 0 {
		limit = fasthttp.DefaultMaxRequestBodySize
	}
	length := req.Header.ContentLength() // negative: unknown
	stream := req.BodyStream()
	begun, known := hasBegun(stream)
	if begun {
		return core.ErrBodyRead
	}
	body, err := io.ReadAll(io.LimitReader(stream, int64(limit)+1))
	switch {
	case err != nil:
		return err
	case len(body) > limit:
		return tooLong(limit)
	case len(body) < length, !known && len(body) == 0 && length != 0:
		return core.ErrBodyRead
	}
	req.SetBodyRaw(body)
	return nil
}

// hasBegun reports whether a handler has read from a stream of fasthttp. It reads an
// unexported field, because the length of a chunked body is not known before its end.
// known is false if fasthttp no longer has the field.
func hasBegun(stream io.Reader) (begun, known bool) {
	v := reflect.Indirect(reflect.ValueOf(stream))
	if v.Kind() != reflect.Struct {
		return false, false
	}
	read := v.FieldByName("totalBytesRead")
	if !read.CanInt() {
		return false, false
	}
	return read.Int() > 0, true
}

func tooLong(limit int) error {
	return &core.BadRequestError{Detail: fmt.Sprintf("the body is longer than %d bytes", limit)}
}

// checkRewritten returns an error if the body b may have other parts than the form that
// handlers read. fasthttp parses a multipart form, decodes quoted-printable parts, and writes
// b anew from them: a decoded part may contain the boundary.
func (r *Request) checkRewritten(b []byte) error {
	req := &r.fast.Request
	boundary := req.Header.MultipartFormBoundary()
	if len(boundary) == 0 || req.Header.ContentLength() <= 0 || len(req.Header.ContentEncoding()) > 0 || r.major.Bodies(r.fiber).KeepMultipart {
		return nil // the body is as it was received
	}
	form, err := req.MultipartForm() // parsed already
	if err != nil {
		return err
	}
	boundaries := 1 // the one at the end
	for _, values := range form.Value {
		boundaries += len(values)
	}
	for _, files := range form.File {
		boundaries += len(files)
	}
	if bytes.Count(b, append([]byte("--"), boundary...)) != boundaries {
		return errors.New(r.major.Adapter + ": a part of the multipart form contains the form's boundary")
	}
	return nil
}
