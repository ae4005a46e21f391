package fiberlimit

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
func (r request) Body(n int) ([]byte, error) {
	if n <= 0 {
		return nil, nil // a question without a read
	}
	req := r.c.Request()
	if err, ok := r.c.Locals(streamKey{}).(error); ok {
		return nil, err
	}
	if req.IsBodyStream() {
		if err := r.readStream(); err != nil {
			r.c.Locals(streamKey{}, err)
			r.c.Context().SetConnectionClose() // the rest of the body is not a request
			return nil, err
		}
	}
	b := req.Body() // as it came: Ctx.Body would inflate it
	if err := r.checkRewritten(b); err != nil {
		return nil, err
	}
	return b[:min(n, len(b))], nil
}

// streamKey is the key of the error of a stream that could not be read whole.
type streamKey struct{}

// readStream replaces the request's stream by the whole body. A reader around
// the stream cannot take its place: fasthttp reuses a stream for another
// request as soon as the request gets another body.
func (r request) readStream() error {
	req := r.c.Request()
	limit := r.c.App().Config().BodyLimit
	if limit <= 0 {
		limit = fasthttp.DefaultMaxRequestBodySize
	}
	length := req.Header.ContentLength() // negative: not known
	if length > limit {
		return tooLong(limit)
	}
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

// hasBegun reports whether somebody has read from a stream of fasthttp's. Nothing
// else tells: the length of a chunked body is not known before its end. If
// fasthttp no longer has the field, it is not known.
func hasBegun(stream io.Reader) (begun, known bool) {
	v := reflect.Indirect(reflect.ValueOf(stream))
	if v.Kind() != reflect.Struct {
		return false, false
	}
	read := v.FieldByName("totalBytesRead")
	if !read.IsValid() || !read.CanInt() {
		return false, false
	}
	return read.Int() > 0, true
}

func tooLong(limit int) error {
	return &core.BadRequestError{Detail: fmt.Sprintf("the body is longer than %d bytes", limit)}
}

var errBoundary = errors.New("fiberlimit: a part of the multipart form has the form's boundary in it")

// checkRewritten returns an error if b, the request's body, may have other parts
// than the form that handlers see. fasthttp parses a multipart form when it
// reads the request, and writes the body anew when it is asked for it. It
// decodes quoted-printable parts on the way: the decoded text may have the
// boundary in it.
func (r request) checkRewritten(b []byte) error {
	req := r.c.Request()
	boundary := req.Header.MultipartFormBoundary()
	if len(boundary) == 0 || req.Header.ContentLength() <= 0 || len(req.Header.ContentEncoding()) > 0 || r.c.App().Config().DisablePreParseMultipartForm {
		return nil // the body is as it came
	}
	form, err := req.MultipartForm() // parsed already
	if err != nil {
		return err
	}
	boundaries := 1 // at the end
	for _, values := range form.Value {
		boundaries += len(values)
	}
	for _, files := range form.File {
		boundaries += len(files)
	}
	if bytes.Count(b, append([]byte("--"), boundary...)) != boundaries {
		return errBoundary
	}
	return nil
}
