package httprequest_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/floodgate-go/floodgate/adapters/internal/httprequest"
	"github.com/floodgate-go/floodgate/core"
)

// What was read ahead can be read again, also after the handler has read on. What the
// handler has read after it cannot.
func TestABodyIsReadAgainAfterTheHandler(t *testing.T) {
	const whole = "abcd"
	for _, row := range []struct {
		ahead, handler, again int // bytes
		want                  string
		err                   error
	}{
		{2, 0, 4, "abcd", nil}, {2, 2, 4, "abcd", nil}, {2, 3, 2, "ab", nil}, {2, 3, 1, "a", nil}, {2, 3, 3, "", core.ErrBodyRead}, {2, 5, 3, "", core.ErrBodyRead},
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

// An error of the body is one only for a key function that wants more than came before it.
func TestTheErrorOfABody(t *testing.T) {
	broken := errors.New("broken")
	for n, want := range map[int]error{1: nil, 4: nil, 5: nil, 6: broken, 600: broken} {
		r := httptest.NewRequest(http.MethodPost, "/", io.NopCloser(&together{"hello", broken}))
		head, err := (httprequest.Request{HTTP: r}).Body(n)
		if !errors.Is(err, want) || want == nil && string(head) != "hello"[:n] {
			t.Errorf("%d bytes: %q, %v, want %v", n, head, err, want)
		}
		if got, err := io.ReadAll(r.Body); string(got) != "hello" || !errors.Is(err, broken) {
			t.Errorf("%d bytes: the handler gets %q, %v", n, got, err)
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

// A key function that reads nothing is told of no error.
func TestNothingIsReadOfAParsedForm(t *testing.T) {
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader("a=b"))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	_ = r.ParseForm()
	for n, want := range map[int]error{-1: nil, 0: nil, 1: core.ErrBodyRead} {
		if head, err := (httprequest.Request{HTTP: r}).Body(n); len(head) != 0 || !errors.Is(err, want) {
			t.Errorf("%d bytes: %q, %v, want %v", n, head, err, want)
		}
	}
}

// A client's request may have no method and no URL.
func TestARequestWithoutAnything(t *testing.T) {
	r := httprequest.Request{HTTP: &http.Request{}}
	_, cookie := r.Cookie("a")
	_, query := r.Query("a")
	if r.Method() != "GET" || r.Path()+r.EscapedPath()+r.RawQuery() != "" || cookie || query {
		t.Errorf("%q %q %q, a cookie: %v, a parameter: %v", r.Method(), r.EscapedPath(), r.RawQuery(), cookie, query)
	}
	other := &http.Request{Method: http.MethodPost, URL: &url.URL{Path: "/p", RawQuery: "a=1&a=2&b"}, Header: http.Header{"Cookie": {"a=c"}}}
	r = httprequest.Request{HTTP: other}
	value, cookie := r.Cookie("a")
	first, query := r.Query("a")
	empty, has := r.Query("b")
	_, none := r.Query("c")
	if r.Method() != "POST" || r.Path() != "/p" || r.RawQuery() != "a=1&a=2&b" || value != "c" || !cookie || first != "1" || !query || empty != "" || !has || none {
		t.Errorf("%q %q %q, cookie %q, parameters %q and %q", r.Method(), r.Path(), r.RawQuery(), value, first, empty)
	}
}

// Deny removes what describes the body of another response, and sends no body with HEAD.
func TestWhatADenialSends(t *testing.T) {
	for method, want := range map[string]string{"GET": "no", "HEAD": ""} {
		w := httptest.NewRecorder()
		for _, name := range []string{"Content-Length", "Etag", "Last-Modified", "X-Other"} {
			w.Header().Set(name, "1")
		}
		denial := core.Denial{Status: 429, Header: []core.Header{{Name: "content-type", Value: "text/plain"}, {Name: "X-Mine", Value: "2"}}, Body: []byte("no")}
		httprequest.Deny(w, httptest.NewRequest(method, "/", nil), &core.Decision{}, denial, nil)
		if h := w.Header(); w.Code != 429 || w.Body.String() != want || h.Get("Content-Type") != "text/plain" || h.Get("X-Mine") != "2" || h.Get("X-Other") != "1" || h.Get("Content-Length")+h.Get("Etag")+h.Get("Last-Modified") != "" {
			t.Errorf("%s: %d, %q, %v", method, w.Code, w.Body, h)
		}
		w = httptest.NewRecorder()
		httprequest.Deny(w, httptest.NewRequest(method, "/", nil), &core.Decision{}, denial, func() { w.WriteHeader(http.StatusTeapot) })
		if h := w.Header(); w.Code != http.StatusTeapot || w.Body.Len() != 0 || h.Get("Content-Type") != "" || h.Get("X-Mine") != "2" {
			t.Errorf("%s, the handler's: %d, %q, %v", method, w.Code, w.Body, h)
		}
	}
}
