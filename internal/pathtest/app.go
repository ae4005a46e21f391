// Package pathtest sends odd spellings of paths to an application and compares the handler that
// answered with the policies that counted the request.
//
// The application mounts the policies of File and the handlers of Routes. Each handler answers with
// its name; the response headers name the policies.
package pathtest

import (
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/policy"
)

// File has a policy for each handler, with the handler's name. Its limits are never reached.
const File = `
policies:
  - {name: api, match: {paths: [/api/**]}, limits: 2000000000/h, headers: draft-10}
  - {name: item, match: {paths: ["/items/{id}"]}, limits: 2000000000/h, headers: draft-10}
  - {name: parts, match: {paths: ["/items/{id}/parts"]}, limits: 2000000000/h, headers: draft-10}
  - {name: leaf, match: {paths: ["/leaf/{id}"]}, limits: 2000000000/h, headers: draft-10}
  - {name: deep, match: {paths: [/a/*/b]}, limits: 2000000000/h, headers: draft-10}
  - {name: login, match: {paths: [/login]}, limits: 2000000000/h, headers: draft-10}
  - {name: spaced, match: {paths: [/my file/x]}, limits: 2000000000/h, headers: draft-10}
  - {name: static, match: {paths: [/files/**]}, limits: 2000000000/h, headers: draft-10}
  - {name: big, match: {paths: [/files/big.bin]}, limits: 2000000000/h, headers: draft-10}
`

// Routes are the handlers: the name, and the route with :id for a parameter. The handler api also
// serves everything below its route.
var Routes = []struct{ Name, Route string }{
	{"item", "/items/:id"}, {"parts", "/items/:id/parts"}, {"leaf", "/leaf/:id"}, {"deep", "/a/:x/b"}, {"login", "/login"}, {"spaced", "/my file/x"},
}

// Braces writes a route as net/http and chi do: {id} for a parameter.
func Braces(route string) string { return parameter.ReplaceAllString(route, "{$1}") }

var parameter = regexp.MustCompile(`:(\w+)`)

// Policies are the policies of File.
func Policies(t testing.TB) *policy.Set {
	t.Helper()
	set, err := policy.Parse("paths.yaml", []byte(File))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := set.Close(); err != nil {
			t.Error(err)
		}
	})
	return set
}

// Methods are those that every route is for.
var Methods = []string{http.MethodGet, http.MethodConnect}

// Header is the response header that names the handler.
const Header = "X-Handler"

// Handler answers with its name.
func Handler(name string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.Header().Set(Header, name) }
}

const bigText = "the big file"

// Folder makes a folder with the file big.bin and another, to be served below /files.
func Folder(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"big.bin": bigText, "small.bin": "small"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Serve serves an application over HTTP/1.1 and, unencrypted, HTTP/2.
func Serve(t testing.TB, h http.Handler) (address string) {
	t.Helper()
	l := Listen(t)
	s := &http.Server{Handler: h, Protocols: new(http.Protocols), ReadHeaderTimeout: time.Minute}
	s.Protocols.SetHTTP1(true)
	s.Protocols.SetUnencryptedHTTP2(true)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = s.Serve(l) // until it is closed
	}()
	t.Cleanup(func() {
		_ = s.Close()
		<-ended
	})
	return l.Addr().String()
}

// Listen listens on a port of its own.
func Listen(t testing.TB) net.Listener {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}
