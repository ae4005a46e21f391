package httprequest_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/httprequest"
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

// What was read ahead can be read again, also after the handler has read on. What the
// handler has read after it cannot.
func TestABodyIsReadAgainAfterTheHandler(t *testing.T) {
	const whole = "abcd"
	for _, row := range []struct {
		ahead, handler, again int // bytes
		want                  string
		err                   error
	}{
		{2, 0, 4, "abcd", nil}, {2, 2, 4, "abcd", nil}, {2, 3, 2, "ab", nil}, {2, 5, 2, "ab", nil}, {2, 3, 1, "a", nil}, {2, 3, 3, "", core.ErrBodyRead}, {2, 5, 3, "", core.ErrBodyRead},
		{4, 5, 4, "abcd", nil}, {4, 5, 9, "abcd", nil}, {9, 5, 9, "abcd", nil}, {2, 5, -1, "", nil}, {2, 5, 0, "", nil},
	} {
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(whole))
		req := httprequest.Request{HTTP: r}
		if head, err := req.Body(row.ahead); string(head) != whole[:min(row.ahead, 4)] || err != nil {
			t.Fatalf("%+v: %q, %v", row, head, err)
		}
		if got, err := io.ReadAll(io.LimitReader(oneByOne{r.Body}, int64(row.handler))); string(got) != whole[:min(row.handler, 4)] || err != nil {
			t.Errorf("%+v: the handler gets %q, %v", row, got, err)
		}
		if head, err := req.Body(row.again); string(head) != row.want || !errors.Is(err, row.err) || (err == nil) != (row.err == nil) {
			t.Errorf("%+v: %q, %v", row, head, err)
		}
	}
}

type oneByOne struct{ io.Reader }

func (o oneByOne) Read(p []byte) (int, error) { return o.Reader.Read(p[:1]) }

// together is a reader that returns its error with the last bytes.
type together struct {
	text string
	err  error
}

func (g *together) Read(p []byte) (int, error) {
	n := copy(p, g.text)
	if g.text = g.text[n:]; g.text == "" {
		return n, g.err
	}
	return n, nil
}

func (g *together) Close() error { return g.err }

// An error of the body is one only for a key function that wants more than came before it.
func TestTheErrorOfABody(t *testing.T) {
	broken := errors.New("broken")
	for n, want := range map[int]error{1: nil, 4: nil, 5: nil, 6: broken, 600: broken} {
		r := httptest.NewRequest(http.MethodPost, "/", &together{"hello", broken})
		head, err := (httprequest.Request{HTTP: r}).Body(n)
		if !errors.Is(err, want) || want == nil && string(head) != "hello"[:n] {
			t.Errorf("%d bytes: %q, %v, want %v", n, head, err, want)
		}
		if got, err := io.ReadAll(r.Body); string(got) != "hello" || !errors.Is(err, broken) || !errors.Is(r.Body.Close(), broken) {
			t.Errorf("%d bytes: the handler gets %q, %v, and must close the body that was sent", n, got, err)
		}
	}
}

// A body that has been received to its end is no longer unread.
func TestABodyThatIsUnread(t *testing.T) {
	for n, want := range map[int]bool{0: true, 4: true, 6: false} {
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader("hello"))
		if _, err := (httprequest.Request{HTTP: r}).Body(n); err != nil {
			t.Fatal(err)
		}
		if httprequest.Unread(r) != want {
			t.Errorf("after %d bytes, it is unread: %v", n, !want)
		}
	}
	if httprequest.Unread(httptest.NewRequest(http.MethodGet, "/", nil)) {
		t.Error("a request without a body has an unread one")
	}
}
