package httprequest_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/floodgate-go/floodgate/adapters/internal/httprequest"
	"github.com/floodgate-go/floodgate/core"
)

// A middleware has read such a body. A body that a middleware has decompressed may be shorter.
func TestABodyThatIsShorterThanItsContentLengthWasRead(t *testing.T) {
	const whole = "username=alice"
	for _, row := range []struct {
		name     string
		length   int64  // in the header; -1: chunked
		encoding string // in the header
		body     string // what is left
		missing  bool
	}{
		{"all of it", int64(len(whole)), "", whole, false},
		{"the first byte", int64(len(whole)), "", whole[1:], true},
		{"all but a byte", int64(len(whole)), "", whole[len(whole)-1:], true},
		{"nothing is left", int64(len(whole)), "", "", true},
		{"nothing is left of chunks", -1, "", "", true},
		{"chunks", -1, "", whole, false},
		{"there was nothing", 0, "", "", false},
		{"decompressed by a middleware", int64(len(whole)) + 30, "gzip", whole, false},
		{"nothing is left of a compressed body", int64(len(whole)) + 30, "gzip", "", true},
	} {
		for _, n := range []int{1 << 10, len(whole) + 1, len(whole), 1} {
			r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(row.body))
			r.ContentLength = row.length
			if row.encoding != "" {
				r.Header.Set("Content-Encoding", row.encoding)
			}
			req := httprequest.Request{HTTP: r}
			head, err := req.Body(n)
			// What is not asked for may be there still.
			want := row.missing && n > len(row.body)
			if errors.Is(err, core.ErrBodyRead) != want || err == nil && string(head) != row.body[:min(n, len(row.body))] {
				t.Errorf("%s, %d bytes: %q, %v, want that it is missing: %v", row.name, n, head, err, want)
			}
			if left, err := io.ReadAll(r.Body); err != nil || string(left) != row.body {
				t.Errorf("%s, %d bytes: the handler gets %q, %v", row.name, n, left, err)
			}
			if !want && n < len(row.body) {
				if _, err := req.Body(n + 1); !errors.Is(err, core.ErrBodyRead) {
					t.Errorf("%s, %d bytes: after the handler has read on: %v", row.name, n, err)
				}
			}
		}
	}
}

// If a middleware has parsed the form, handlers do not read the rest of the body.
func TestABodyOfAParsedFormIsAnError(t *testing.T) {
	const multipart = "--XX\r\nContent-Disposition: form-data; name=\"username\"\r\n\r\nalice\r\n--XX--\r\n"
	for body, kind := range map[string]string{
		"username=alice": "application/x-www-form-urlencoded", multipart: "multipart/form-data; boundary=XX",
		strings.Replace(multipart, `name="username"`, `name="username"; filename="f"`, 1): "multipart/form-data; boundary=XX", // a file alone
	} {
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
		r.Header.Set("Content-Type", kind)
		_ = r.FormValue("x")
		r.Body = io.NopCloser(bytes.NewReader([]byte("username=decoy"))) // a middleware puts something back
		r.ContentLength = int64(len("username=decoy"))
		if head, err := (httprequest.Request{HTTP: r}).Body(100); !errors.Is(err, core.ErrBodyRead) {
			t.Errorf("%s: %q, %v", kind, head, err)
		}
	}
	r := httptest.NewRequest(http.MethodGet, "/?username=alice", http.NoBody)
	_ = r.FormValue("x") // no form was in the body
	if head, err := (httprequest.Request{HTTP: r}).Body(100); err != nil || len(head) != 0 {
		t.Errorf("a request without a body: %q, %v", head, err)
	}
}
