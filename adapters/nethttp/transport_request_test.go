package httplimit_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	httplimit "github.com/floodgate-go/floodgate/adapters/nethttp"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

// A body that a key function reads is sent whole, and the request stays as it is.
func TestARequestIsNotChanged(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) }))
	defer server.Close()
	limiter := core.Must(core.New(core.Config{Rules: []core.Rule{{
		Name: "user", Key: keyfuncs.PostField("username"), Limits: []core.Limit{core.PerHour(1)},
		Counts: func(r core.Request, _ core.Outcome) bool {
			_, err := r.Body(1)
			return errors.Is(err, core.ErrBodyRead)
		},
	}}}))
	client := &http.Client{Transport: httplimit.Transport(limiter, server.Client().Transport)}
	defer client.CloseIdleConnections()
	for i, want := range []string{"", "denied", ""} {
		text := "username=alice"
		if i == 2 {
			text = "username=bob"
		}
		body := &closing{Reader: strings.NewReader(text)}
		r := request(t.Context(), t, server.URL, body)
		r.ContentLength = int64(len(text))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		resp, err := client.Transport.RoundTrip(r)
		if r.Body != body || len(r.Header) != 1 || r.Host != strings.TrimPrefix(server.URL, "http://") {
			t.Error("the request was changed")
		}
		if (want == "") != (err == nil) {
			t.Fatalf("request %d: %v", i, err)
		}
		if err != nil {
			continue
		}
		if got, err := io.ReadAll(resp.Body); err != nil || string(got) != text {
			t.Errorf("the server got %q, %v", got, err)
		}
		if resp.Request != r {
			t.Error("the response has another request")
		}
		_ = resp.Body.Close()
	}
}

// buffered is a reader whose values cannot be compared.
type buffered struct {
	io.Reader
	_ []byte
}

func TestABodyThatCannotBeCompared(t *testing.T) {
	for _, limits := range [][]core.Limit{{core.InFlight(1)}, {core.PerHour(10)}} {
		rt := httplimit.Transport(perTarget(0, limits...), trips(func(r *http.Request) (*http.Response, error) {
			text, err := io.ReadAll(r.Body)
			return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(string(text))), Request: r}, err
		}))
		for _, body := range []io.Reader{buffered{Reader: strings.NewReader("hello")}, struct {
			io.Reader
			io.Closer
			_ []int
		}{strings.NewReader("hello"), http.NoBody, nil}} {
			r := request(t.Context(), t, "http://a/", body)
			resp, err := rt.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := io.ReadAll(resp.Body); string(got) != "hello" || err != nil || resp.Request != r {
				t.Errorf("%q, %v", got, err)
			}
			_ = resp.Body.Close()
		}
	}
}

// pipe is the body of a response with the status 101.
type pipe struct{ strings.Builder }

func (*pipe) Read([]byte) (int, error) { return 0, io.EOF }
func (*pipe) Close() error             { return nil }

func TestAConnectionThatSwitchesProtocolsCanBeWrittenTo(t *testing.T) {
	under := &pipe{}
	rt := httplimit.Transport(perTarget(0, core.InFlight(1)), trips(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusSwitchingProtocols, Body: under}, nil
	}))
	resp, err := rt.RoundTrip(request(t.Context(), t, "http://a/", nil))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if w, ok := resp.Body.(io.Writer); !ok {
		t.Error("the body cannot be written to")
	} else if _, err := io.WriteString(w, "ping"); err != nil || under.String() != "ping" {
		t.Errorf("%q, %v", under, err)
	}
}

func TestTargetHost(t *testing.T) {
	for url, want := range map[string]string{
		"https://API.example/a":     "api.example",
		"https://api.example:443/a": "api.example",
		"http://api.example:443/":   "api.example:443",
		"http://[::1]:80/":          "[::1]",
		"http://api.example:/":      "api.example",
		"http://api.example.:80/":   "api.example",
		"http://api.example.:81/":   "api.example:81",
		"http://api.example:081/":   "api.example:81",
		"http://API.example:0080/":  "api.example",
		"http://[0:0::1]:80/":       "[::1]",
		"http://[::FFFF:7f00:1]/":   "127.0.0.1",
		"http://[fe80::1%25Eth0]/":  "[fe80::1%Eth0]",
		"http://[::1]:81/":          "[::1]:81",
		"http://127.0.0.1.:81/":     "127.0.0.1:81",
	} {
		var key string
		limiter := core.Must(core.New(core.Config{Rules: []core.Rule{{
			Name: "host", Limits: []core.Limit{core.PerHour(1)},
			Key: func(dst []byte, r core.Request) ([]byte, error) {
				dst, err := httplimit.TargetHost(dst, r)
				key = string(dst)
				if r.RemoteAddr() != key || len(r.HeaderValues("host")) != 1 {
					t.Errorf("RemoteAddr %q, Host %q", r.RemoteAddr(), r.HeaderValues("host"))
				}
				return dst, err
			},
		}}}))
		_, _ = send(t.Context(), t, httplimit.Transport(limiter, trips(func(*http.Request) (*http.Response, error) { return answer(200), nil })), url)
		if key != want {
			t.Errorf("%s: %q, want %q", url, key, want)
		}
	}
	w := httptest.NewRecorder()
	httplimit.Middleware(perTarget(0, core.PerHour(1)))(http.NotFoundHandler()).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	if w.Code != http.StatusServiceUnavailable {
		t.Errorf("a server's request: %d", w.Code)
	}
}
