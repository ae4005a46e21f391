package adaptertest

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

// hidden are requests by which an attacker guesses the victim's password while
// another name, which is new each time, is to be counted. $v is the victim's
// name and $i the number of the guess.
var hidden = []struct{ name, method, query, contentType, body string }{
	{"200: the query beside a form", "POST", "?username=$v", formType, "USERNAME=d$i"},
	{"200: the query in capitals", "POST", "?USERNAME=$v", formType, "username=d$i"},
	{"200: the query beside a multipart form", "POST", "?username=$v", multipartType, multipartBody("username", "d$i")},
	{"200: the query beside JSON", "POST", "?username=$v", "application/json", `{"username":"d$i"}`},
	{"200: a GET", "GET", "?username=$v&i=$i", "", ""},
	{"200: a HEAD", "HEAD", "?UserName=$v&i=$i", "", ""},
	{"200: a PUT", "PUT", "?username[]=$v&i=$i", "", ""},
	{"200: a PATCH", "PATCH", "?user%6eame=$v&i=$i", "", ""},
	{"200: a DELETE", "DELETE", "?username=$v&i=$i", "", ""},
	{"200: a semicolon in the query", "POST", "?a=b;username=$v", formType, "USERNAME=d$i"},
	{"200: a malformed escape in the query", "POST", "?a=%25&username=$v&i=$i", formType, "username=d$i"},
	{"201: empty brackets", "POST", "", formType, "username=d$i&username[]=$v"},
	{"201: brackets inside", "POST", "", formType, "userna[]me=$v&USERNAME=d$i"},
	{"201: brackets around", "POST", "", formType, "[username]=$v&username=d$i"},
	{"201: a path", "POST", "", formType, "username=d$i&form.username=$v"},
	{"201: brackets in a multipart form", "POST", "", multipartType, twoParts("username", "d$i", "username[]", "$v")},
	{"58: letter case", "POST", "", formType, "username=d$i&UserName=$v"},
	{"58: a long s", "POST", "", formType, "username=d$i&u%C5%BFername=$v"},
	{"59: JSON twice", "POST", "", "application/json", `{"username":"d$i","USERNAME":"$v"}`},
	{"62: JSON with two values", "POST", "", "application/json", `{"username":"$v"}{"username":"d$i"}`},
	{"62: JSON that is a form", "POST", "", formType, `{"username":"$v","x":"&username=d$i&"}`},
	{"62: JSON before a multipart form", "POST", "", multipartType, `{"username":"$v"}` + "\r\n" + multipartBody("username", "d$i")},
	{"62: JSON of a type that Fiber knows", "POST", "", "text/json", `{"username":"$v","i":$i}`},
	{"62: JSON of no type", "POST", "", "", `{"username":"$v","i":$i}`},
	{"62: XML", "POST", "", "application/xml", "<Form i='$i'><username>$v</username></Form>"},
	{"62: XML as text", "POST", "", "text/xml", "<Form i='$i'><username>$v</username></Form>"},
	{"62: YAML", "POST", "", "application/x-yaml", "username: $v\ni: $i"},
	{"62: TOML", "POST", "", "application/toml", "username = '$v'\ni = $i"},
	{"62: a form that only fasthttp reads", "POST", "", formType + "$i", "username=$v"},
	{"62: another boundary for fasthttp", "POST", "", `multipart/form-data; a="; boundary=YY;"; boundary=XX`, multipartBody("username", "d$i") + strings.ReplaceAll(multipartBody("username", "$v"), "XX", "YY")},
	{"64: many fields", "POST", "", formType, strings.Repeat("a&", 10_001) + "username=$v&i=$i"},
	{"72: parts in a quoted-printable value", "POST", "", multipartType, "--XX\r\nContent-Disposition: form-data; name=\"a\"\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n" +
		"x=0D=0A--XX=0D=0AContent-Disposition: form-data; name=3D\"username\"=0D=0A=0D=0Ad$i=0D=0A--XX--=0D=0A\r\n" + multipartBody("username", "$v")},
	{"205: white space around", "POST", "", formType, "username=$v%E2%80%A8%C2%85%E1%9A%80"},
}

const formType = "application/x-www-form-urlencoded"

func twoParts(name1, value1, name2, value2 string) string {
	return strings.TrimSuffix(multipartBody(name1, value1), "--XX--\r\n") + multipartBody(name2, value2)
}

// handlersRead shows that no handler, however it reads the username, judges a name
// more often than the limit of that name allows.
func handlersRead(t *testing.T, a Adapter) {
	if len(a.Readers) == 0 {
		return
	}
	t.Run("HTTP/1.1", func(t *testing.T) {
		guess(t, a, "http://", a.Serve, http.DefaultTransport.(*http.Transport).Clone())
	})
	if a.ServeHTTP2 != nil {
		t.Run("HTTP/2", func(t *testing.T) {
			guess(t, a, "https://", a.ServeHTTP2, &http.Transport{
				TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // the server's certificate is made for the test
				ForceAttemptHTTP2: true,
			})
		})
	}
}

func guess(t *testing.T, a Adapter, scheme string, serve func(*testing.T, App) string, transport *http.Transport) {
	const quota, guesses = 3, 8
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: timeout}
	judged := judgements{names: map[string]int{}}
	l := limiter(t, core.Config{Rules: []core.Rule{{
		Name: "user", Limits: []core.Limit{core.PerMinute(quota)},
		Key: keyfuncs.PostField("username", keyfuncs.Strict(), keyfuncs.RequireValue(), keyfuncs.Normalize(keyfuncs.PlainName), keyfuncs.Normalize(keyfuncs.FoldCase)),
	}}})
	app := App{}
	for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"} {
		app.Routes = append(app.Routes, Route{Method: method, Pattern: "/login", Limits: []Limit{{Checker: l}}, Handler: judged.handler})
	}
	url := scheme + serve(t, app) + "/login"
	victims := 0
	attack := func(reader, method, query, contentType, body string) (victim string, statuses map[int]int) {
		victims++
		victim, statuses = fmt.Sprintf("victim%dv", victims), map[int]int{}
		for i := range guesses {
			fill := strings.NewReplacer("$v", victim, "$i", fmt.Sprint(guesses*victims+i)) // no decoy is used twice
			statuses[send(t, client, method, url+fill.Replace(query), fill.Replace(body), "Content-Type", fill.Replace(contentType), "X-Reader", reader)]++
		}
		return victim, statuses
	}
	for _, row := range hidden {
		for _, reader := range a.Readers {
			victim, statuses := attack(reader, row.method, row.query, row.contentType, row.body)
			if n := judged.of(victim); n > quota {
				t.Errorf("%s: %s judged the victim %d times in %d guesses, want at most %d", row.name, reader, n, guesses, quota)
			}
			for status := range statuses {
				if status != http.StatusUnauthorized && status != http.StatusBadRequest && status != http.StatusTooManyRequests {
					t.Errorf("%s: %s: status %d", row.name, reader, status)
				}
			}
		}
	}
	for _, row := range []struct{ contentType, body string }{
		{formType, "username=$v&i=$i"}, {multipartType, multipartBody("username", "$v")}, {"application/json", `{"username":"$v","i":$i}`},
	} {
		read := 0
		for _, reader := range a.Readers {
			victim, statuses := attack(reader, "POST", "?i=$i", row.contentType, row.body)
			if statuses[http.StatusUnauthorized] != quota || statuses[http.StatusTooManyRequests] != guesses-quota {
				t.Errorf("ordinary requests of type %s: statuses %v", row.contentType, statuses)
			}
			if judged.of(victim) == quota {
				read++
			}
		}
		if read < 2 {
			t.Errorf("%d readers read the type %s", read, row.contentType)
		}
	}
}

// send sends a request and returns the status.
func send(t *testing.T, client *http.Client, method, url, body string, header ...string) int {
	t.Helper()
	var reader io.Reader
	if body != "" {
		reader = strings.NewReader(body)
	}
	req, err := http.NewRequestWithContext(context.Background(), method, url, reader)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		if header[i+1] != "" {
			req.Header.Set(header[i], header[i+1])
		}
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // only read from
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}

// judgements counts how often a handler has judged each name. It takes names
// for the same that differ in letter case or in white space at the ends.
type judgements struct {
	mu    sync.Mutex
	names map[string]int
}

func (j *judgements) handler(c Context) error {
	name := c.Read(c.Header("X-Reader"))
	j.mu.Lock()
	defer j.mu.Unlock()
	j.names[strings.ToLower(strings.TrimSpace(name))]++
	return c.Respond(http.StatusUnauthorized, "wrong")
}

func (j *judgements) of(name string) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.names[name]
}
