package adaptertest

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	neturl "net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/usernames"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

const (
	formType = "application/x-www-form-urlencoded"
	jsonType = "application/json"
)

func twoParts(name1, value1, name2, value2 string) string {
	return strings.TrimSuffix(multipartBody(name1, value1), "--XX--\r\n") + multipartBody(name2, value2)
}

// guarded are the fields in which an attacker hides a name.
var guarded = []struct {
	name   string // of Adapter.Readers
	key    func(...keyfuncs.PostFieldOption) core.KeyFunc
	hidden []hiding
	plain  []struct{ contentType, body string } // ordinary requests
}{
	{"username", postField("username"), hidden, []struct{ contentType, body string }{
		{formType, "username=$v&i=$i"}, {multipartType, multipartBody("username", "$v")}, {jsonType, `{"username":"$v","i":$i}`},
	}},
	{"user[name]", postField("user[name]"), hiddenInAPath, []struct{ contentType, body string }{
		{formType, "user[name]=$v&i=$i"}, {jsonType, `{"user":{"name":"$v"},"i":$i}`},
	}},
	{"name", postField("name", keyfuncs.JSONPath("user", "name")), hiddenByName, []struct{ contentType, body string }{{jsonType, `{"user":{"name":"$v"},"i":$i}`}}},
	{"mail", postField("mail"), hiddenByCase, []struct{ contentType, body string }{{formType, "mail=$v&i=$i"}, {jsonType, `{"mail":"$v","i":$i}`}}},
}

func postField(name string, opts ...keyfuncs.PostFieldOption) func(...keyfuncs.PostFieldOption) core.KeyFunc {
	return func(more ...keyfuncs.PostFieldOption) core.KeyFunc {
		return keyfuncs.PostField(name, append(more, opts...)...)
	}
}

// handlersRead shows that no handler, however it reads a field, judges a name
// more often than the limit of that name allows.
func handlersRead(t *testing.T, a Adapter) {
	for i, field := range guarded {
		t.Run(field.name+", HTTP/1.1", func(t *testing.T) {
			guess(t, a, i, "http://", a.Serve, http.DefaultTransport.(*http.Transport).Clone())
		})
		t.Run(field.name+", HTTP/2", func(t *testing.T) {
			if a.ServeHTTP2 == nil {
				t.Skip("the framework has no HTTP/2")
			}
			guess(t, a, i, "https://", a.ServeHTTP2, &http.Transport{
				TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // the server's certificate is made for the test
				ForceAttemptHTTP2: true,
			})
		})
	}
}

// guess tries to guess the passwords of victims who are hidden in a field.
func guess(t *testing.T, a Adapter, index int, scheme string, serve func(*testing.T, App) string, transport *http.Transport) {
	const quota, guesses = 3, 8
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: timeout}
	field := guarded[index]
	judged := judgements{field: field.name, names: map[string]int{}}
	l := limiter(t, core.Config{Rules: []core.Rule{{
		Name: "user", Limits: []core.Limit{core.PerMinute(quota)},
		Key: field.key(keyfuncs.Strict(), keyfuncs.RequireValue(), keyfuncs.Normalize(usernames.Plain), keyfuncs.Normalize(usernames.Fold)),
	}}})
	app := App{}
	for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"} {
		app.Routes = append(app.Routes, Route{Method: method, Pattern: "/login", Limits: []Limit{{Checker: l}}, Handler: judged.handler})
	}
	url := scheme + serve(t, app) + "/login"
	victims := 0
	attack := func(reader, method, query, contentType, body string) (victim string, statuses map[int]int) {
		victims++
		victim, statuses = fmt.Sprintf("victim%04dv", victims), map[int]int{}
		for i := range guesses {
			unseen := invisible[i%len(invisible)]
			fill := strings.NewReplacer(
				"$v", victim, "$i", fmt.Sprint(guesses*victims+i), // no decoy is used twice
				"$case", []string{"kåi\u2c65ß", "\u212a\u212b\u0130\u023a\u1e9e"}[i%2],
				"$number", fmt.Sprint(int64(1)<<53+int64(i%2)),
				"$hidden", neturl.QueryEscape(string(unseen)), "$escaped", fmt.Sprintf(`\u%04x`, unseen),
			)
			statuses[send(t, client, method, url+fill.Replace(query), fill.Replace(body), "Content-Type", fill.Replace(contentType), "X-Reader", reader)]++
		}
		return victim, statuses
	}
	for _, row := range field.hidden {
		for _, reader := range a.Readers[field.name] {
			victim, statuses := attack(reader, row.method, row.query, row.contentType, row.body)
			for _, name := range []string{victim, victim + "kåi\u2c65ß", fmt.Sprint(int64(1) << 53)} {
				if n := judged.of(name); n > quota {
					t.Errorf("%s: %s judged %q %d times in %d guesses, want at most %d", row.name, reader, name, n, guesses, quota)
				}
			}
			for status := range statuses {
				if status != http.StatusUnauthorized && status != http.StatusBadRequest && status != http.StatusTooManyRequests {
					t.Errorf("%s: %s: status %d", row.name, reader, status)
				}
			}
		}
	}
	for _, row := range field.plain {
		read := 0
		for _, reader := range a.Readers[field.name] {
			victim, statuses := attack(reader, "POST", "?i=$i", row.contentType, row.body)
			if statuses[http.StatusUnauthorized] != quota || statuses[http.StatusTooManyRequests] != guesses-quota {
				t.Errorf("ordinary requests of type %s: statuses %v", row.contentType, statuses)
			}
			if judged.of(victim) == quota {
				read++
			}
		}
		if read == 0 {
			t.Errorf("no reader reads the type %s", row.contentType)
		}
	}
}

// invisible are characters that are not seen in a name. Handlers may drop them.
var invisible = []rune{0xad, 0x34f, 0x115f, 0x17b4, 0x180b, 0x200b, 0x2060, 0x3164, 0xfe0f, 0xffa0}

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
// for the same that differ in letter case, in white space at the ends or in
// invisible characters.
type judgements struct {
	field string
	mu    sync.Mutex
	names map[string]int
}

func (j *judgements) handler(c Context) error {
	name := strings.Map(func(r rune) rune {
		if slices.Contains(invisible, r) {
			return -1
		}
		return r
	}, c.Read(j.field, c.Header("X-Reader")))
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
