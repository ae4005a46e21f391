package httprequest_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/adapters/internal/httprequest"
	"github.com/floodgate-go/floodgate/core"
)

// server2 is a response writer with the methods that the server's writers for HTTP/1 and HTTP/2
// have in common.
type server2 struct{ *httptest.ResponseRecorder }

var errSeen = errors.New("the server's writer was called")

func (s server2) FlushError() error                { s.Flush(); return nil }
func (s server2) CloseNotify() <-chan bool         { return nil }
func (s server2) SetReadDeadline(time.Time) error  { return errSeen }
func (s server2) SetWriteDeadline(time.Time) error { return errSeen }
func (s server2) EnableFullDuplex() error          { return errSeen }

// server1 has all methods of the server's writer for HTTP/1.
type server1 struct {
	server2
	server1Methods
}

type server1Methods interface {
	http.Hijacker
	io.ReaderFrom
}

// pushing has all methods of the server's writer for HTTP/2.
type pushing struct{ server2 }

func (pushing) Push(string, *http.PushOptions) error { return errSeen }

// nothing has only the methods of http.ResponseWriter.
type nothing struct{ http.ResponseWriter }

// stringy has one optional method.
type stringy struct {
	http.ResponseWriter
	io.StringWriter
}

// The writer that the handler gets has the methods that the other has, and no others but Unwrap.
func TestTheWatchersWriterHasTheSameMethods(t *testing.T) {
	r := httptest.NewRecorder()
	for name, w := range map[string]http.ResponseWriter{
		"nothing": nothing{r}, "strings": stringy{r, r}, "HTTP/1": server1{server2{r}, &server{r, nil}}, "HTTP/2": pushing{server2{r}}, "common": server2{r},
		"all": struct {
			server1
			http.Pusher
		}{server1{server2{r}, &server{r, nil}}, pushing{}},
	} {
		got := httprequest.NewWatcher(t.Context(), new(core.Decision)).Wrap(w)
		for _, method := range []string{"WriteString", "Flush", "FlushError", "CloseNotify", "SetReadDeadline", "SetWriteDeadline", "EnableFullDuplex", "Hijack", "ReadFrom", "Push"} {
			has := func(v any) bool { return reflect.ValueOf(v).MethodByName(method).IsValid() }
			if has(got) != has(w) {
				t.Errorf("%s: the writer has %s: %t, the handler's: %t", name, method, has(w), has(got))
			}
		}
		if u, ok := got.(interface{ Unwrap() http.ResponseWriter }); !ok || name != "common" && u.Unwrap() != w {
			t.Errorf("%s: the writer is not to be had", name)
		}
	}
}

func TestTheWatchersWritersPassEveryCallOn(t *testing.T) {
	for name, make := range map[string]func(*httptest.ResponseRecorder) http.ResponseWriter{
		"nothing": func(r *httptest.ResponseRecorder) http.ResponseWriter { return nothing{r} },
		"HTTP/1": func(r *httptest.ResponseRecorder) http.ResponseWriter {
			return server1{server2{r}, &server{r, errSeen}}
		},
		"HTTP/2": func(r *httptest.ResponseRecorder) http.ResponseWriter { return pushing{server2{r}} },
	} {
		for method, call := range map[string]func(w http.ResponseWriter) (status int, body string, called bool){
			"Write": func(w http.ResponseWriter) (int, string, bool) {
				_, err := w.Write([]byte("x"))
				w.WriteHeader(http.StatusNotFound) // too late
				return 200, "x", err == nil
			},
			"WriteHeader": func(w http.ResponseWriter) (int, string, bool) {
				w.WriteHeader(http.StatusNotFound)
				return http.StatusNotFound, "", true
			},
			"Header": func(w http.ResponseWriter) (int, string, bool) { w.Header().Set("A", "b"); return 200, "", true },
			"WriteString": func(w http.ResponseWriter) (int, string, bool) {
				_, err := w.(io.StringWriter).WriteString("x")
				w.WriteHeader(http.StatusNotFound) // too late
				return 200, "x", err == nil
			},
			"ReadFrom": func(w http.ResponseWriter) (int, string, bool) {
				n, err := w.(io.ReaderFrom).ReadFrom(strings.NewReader("xy"))
				w.WriteHeader(http.StatusNotFound) // too late
				return 200, "xy", n == 2 && err == nil
			},
			"Flush": func(w http.ResponseWriter) (int, string, bool) {
				w.(http.Flusher).Flush()
				w.WriteHeader(http.StatusNotFound)
				return 200, "", true
			},
			"FlushError": func(w http.ResponseWriter) (int, string, bool) {
				err := http.NewResponseController(w).Flush()
				w.WriteHeader(http.StatusNotFound)
				return 200, "", err == nil
			},
			"Hijack": func(w http.ResponseWriter) (int, string, bool) {
				_, _, err := w.(http.Hijacker).Hijack()
				return 200, "", errors.Is(err, errSeen)
			},
			"Push": func(w http.ResponseWriter) (int, string, bool) {
				return 200, "", errors.Is(w.(http.Pusher).Push("", nil), errSeen)
			},
			"SetReadDeadline": func(w http.ResponseWriter) (int, string, bool) {
				return 200, "", errors.Is(http.NewResponseController(w).SetReadDeadline(time.Time{}), errSeen)
			},
			"SetWriteDeadline": func(w http.ResponseWriter) (int, string, bool) {
				return 200, "", errors.Is(http.NewResponseController(w).SetWriteDeadline(time.Time{}), errSeen)
			},
			"EnableFullDuplex": func(w http.ResponseWriter) (int, string, bool) {
				return 200, "", errors.Is(http.NewResponseController(w).EnableFullDuplex(), errSeen)
			},
			"CloseNotify": func(w http.ResponseWriter) (int, string, bool) {
				return 200, "", w.(http.CloseNotifier).CloseNotify() == nil //nolint:staticcheck // the server's writers have it
			},
		} {
			r := httptest.NewRecorder()
			watcher := httprequest.NewWatcher(t.Context(), new(core.Decision))
			w := watcher.Wrap(make(r))
			if !reflect.ValueOf(w).MethodByName(method).IsValid() {
				continue
			}
			status, body, called := call(w)
			if got := watcher.Outcome(t.Context(), false, nil, r.Header().Get); got.Status != status || r.Body.String() != body || !called || method == "Header" && got.Header("A") != "b" {
				t.Errorf("%s, %s: the status is %d, the body %q, called: %t; want %d and %q", name, method, got.Status, r.Body, called, status, body)
			}
			if flushes := strings.HasPrefix(method, "Flush"); r.Flushed != flushes {
				t.Errorf("%s, %s: flushed: %t", name, method, r.Flushed)
			}
		}
	}
}

// If a future server's writer has other methods, the handler still gets a writer with all of
// them, but it costs more.
func TestTheServersWritersAreKnown(t *testing.T) {
	for _, two := range []bool{false, true} {
		var got string
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			got = fmt.Sprintf("%T", httprequest.NewWatcher(t.Context(), new(core.Decision)).Wrap(w))
		}))
		s.EnableHTTP2 = two
		s.StartTLS()
		resp, err := s.Client().Get(s.URL)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if s.Close(); got != fmt.Sprintf("httprequest.server%dWriter", resp.ProtoMajor) {
			t.Errorf("%s: the handler gets a %s", resp.Proto, got)
		}
	}
}
