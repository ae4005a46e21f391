package policy_test

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/floodgatetest"
	"github.com/floodgate-go/floodgate/internal/memcachedtest"
	"github.com/floodgate-go/floodgate/internal/processtest"
	"github.com/floodgate-go/floodgate/internal/redistest"
	"github.com/floodgate-go/floodgate/policy"
)

// instance is one of several processes under the same file.
func instance(t *testing.T, text string, opts ...policy.Option) *site {
	t.Helper()
	set, err := policy.Parse("f.yaml", []byte(text), append(opts, policy.AnotherInstance())...)
	must(t, err)
	t.Cleanup(func() { must(t, set.Close()) })
	s := &site{t: t, set: set}
	s.mount(set)
	return s
}

const sharedAndLocal = `
policies:
  - {name: shared, limits: 3/h aligned, match: {paths: [/shared]}}
  - {name: local, limits: 3/h, counting: local, match: {paths: [/local]}}
`

// twoInstances says how many of 20 requests to two instances pass.
func twoInstances(t *testing.T, text, path string) (passed int) {
	t.Helper()
	sites := []*site{instance(t, text), instance(t, text)}
	for i := range 20 {
		if sites[i%2].send("GET", path).Code == 200 {
			passed++
		}
	}
	return passed
}

func TestPoliciesInRedis(t *testing.T) {
	redis := redistest.Start(t)
	redis.MustDo("ACL", "SETUSER", "limits", "on", ">s3cret", "~*", "+@all")
	redis.MustDo("ACL", "SETUSER", "default", "off")
	password := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(password, []byte("s3cret\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("LIMITS_USER", "limits")
	for db, form := range []string{"s3cret", "{file: " + password + "}"} { // the second one counts anew, in another database
		text := fmt.Sprintf("store: {redis: {address: %q, user: {env: LIMITS_USER}, password: %s, db: %d, timeout: 2s}, on-failure: fail-closed}",
			redis.Addr, form, db) + sharedAndLocal
		if got := twoInstances(t, text, "/shared"); got != 3 {
			t.Errorf("password %s: shared: %d pass, want 3", form, got)
		}
		if got := twoInstances(t, text, "/local"); got != 6 {
			t.Errorf("password %s: local: %d pass, want 6", form, got)
		}
	}
	wrong := instance(t, "store: {redis: {address: \""+redis.Addr+"\", user: limits, password: wrong, timeout: 2s}, on-failure: fail-closed}"+sharedAndLocal)
	wrong.expect(503, "GET", "/shared")
	wrong.expect(200, "GET", "/local")
	if p := wrong.set.Policies(); !p[0].Shared || p[1].Shared {
		t.Errorf("shared: %t and %t, want true and false", p[0].Shared, p[1].Shared)
	}
}

func TestPoliciesInARedisCluster(t *testing.T) {
	cluster := redistest.StartCluster(t, 3)
	addresses := `"` + strings.Join(cluster.Addrs(), `", "`) + `"`
	for _, path := range []string{"/a", "/b", "/c", "/d"} { // keys of several servers
		if got := twoInstances(t, "{store: {redis: {address: ["+addresses+"], cluster: true, timeout: 5s}, on-failure: fail-closed}, policies: [{name: a, key: path, limits: 3/h aligned}]}", path); got != 3 {
			t.Errorf("%s: %d pass, want 3", path, got)
		}
	}
}

func TestPoliciesInMemcached(t *testing.T) {
	server := memcachedtest.Start(t)
	if got := twoInstances(t, "store: {memcached: {servers: [\""+server.Addr+"\"], timeout: 2s}, on-failure: fail-closed}"+sharedAndLocal, "/shared"); got != 3 {
		t.Errorf("%d pass, want 3", got)
	}
}

func TestPoliciesInASyncedStore(t *testing.T) {
	redis := redistest.Start(t)
	text := "store: {synced: {redis: {address: \"" + redis.Addr + "\", timeout: 2s}, interval: 10ms}}" + sharedAndLocal
	a, b := instance(t, text), instance(t, text)
	for range 3 {
		a.expect(200, "GET", "/shared")
	}
	processtest.WaitFor(t, "b to hear of it", func() bool { return b.send("GET", "/shared").Code == 429 })
	if got := twoInstances(t, "name: other\n"+strings.Replace(text, "10ms", "1h", 1), "/shared"); got != 6 {
		t.Errorf("within an interval: %d pass, want 6", got)
	}
}

// A process starts while the server of a synced store is down, and counts for itself.
func TestTheServerIsDownAtTheStart(t *testing.T) {
	var log bytes.Buffer
	set, err := policy.Parse("f.yaml", []byte(`store: {synced: {redis: {address: "127.0.0.1:1", timeout: 50ms}}}`+sharedAndLocal), policy.Log(slog.New(slog.NewTextHandler(&log, nil))))
	must(t, err)
	s := &site{t: t, set: set}
	s.mount(set)
	for range 3 {
		s.expect(200, "GET", "/shared")
	}
	s.expect(429, "GET", "/shared")
	if err := set.Close(); err == nil || !strings.Contains(err.Error(), "3 hits could not be pushed") || !strings.Contains(log.String(), "the shared counters do not answer; this process counts for itself\" namespace=policy ") {
		t.Errorf("Close: %v; logged: %s", err, &log)
	}
}

// What the file says of a store that is not there is what happens.
func TestOnFailure(t *testing.T) {
	for onFailure, want := range map[string]int{"local": 4, "local, instances: 2": 2, "fail-open": 10, "fail-closed": 0} {
		t.Run(onFailure, func(t *testing.T) {
			var log bytes.Buffer
			policies := strings.NewReplacer("3/h aligned", "4/h aligned", "3/h", "99/h", "/local", "/shared").Replace(sharedAndLocal)
			s := instance(t, "store: {redis: {address: \"127.0.0.1:1\", timeout: 350ms}, on-failure: "+onFailure+"}"+policies,
				policy.Log(slog.New(slog.NewTextHandler(&log, nil))))
			passed, codes := 0, map[int]bool{}
			for range 10 {
				code := s.send("GET", "/shared").Code
				if codes[code] = true; code == 200 {
					passed++
				}
			}
			if passed != want {
				t.Errorf("%d pass, want %d (%v)", passed, want, codes)
			}
			if d := s.set.Check(get("/shared")); d.Degraded != (onFailure != "fail-closed") {
				t.Errorf("degraded: %t", d.Degraded)
			}
			if onFailure == "fail-closed" && !codes[503] {
				t.Errorf("codes %v, want 503", codes)
			}
			if !strings.Contains(log.String(), "the shared counters do not answer\" limiter=policies on_failure=") || !strings.Contains(log.String(), "connection refused") || !s.set.Guarantees().Shared {
				t.Errorf("guarantees: %+v; logged: %s", s.set.Guarantees(), &log)
			}
		})
	}
}

// A server that accepts connections and does not answer is given as long as the file says.
func TestTheTimeoutOfAStore(t *testing.T) {
	silent := core.Must(net.Listen("tcp", "127.0.0.1:0"))
	defer silent.Close() //nolint:errcheck // the test is over
	for _, store := range []string{"redis: {address: '%s', timeout: 300ms}", "memcached: {servers: ['%s'], timeout: 300ms}"} {
		s := instance(t, fmt.Sprintf("store: {"+store+", on-failure: fail-closed}", silent.Addr())+sharedAndLocal)
		begun := time.Now()
		s.expect(503, "GET", "/shared")
		if took := time.Since(begun); took < 300*time.Millisecond || took > 2500*time.Millisecond {
			t.Errorf("%s: the answer came after %v", store, took)
		}
	}
	begun := time.Now() // a synced store asks for the counters before the first decision
	set, err := policy.Parse("f", fmt.Appendf(nil, "store: {synced: {redis: {address: '%s', timeout: 1200ms}}}"+sharedAndLocal, silent.Addr()))
	if took := time.Since(begun); took < 1200*time.Millisecond {
		t.Errorf("a synced store gives up after %v", took)
	}
	must(t, err, set.Close())
}

// Two files that count in one store under one name are refused with what to write.
func TestTwoFilesOfOneName(t *testing.T) {
	const file = "store: {memcached: {servers: [\"127.0.0.1:1\"]}}\npolicies: [{name: a, limits: 1/h}]\n"
	first, err := policy.Parse("first.yaml", []byte(file))
	must(t, err)
	defer first.Close() //nolint:errcheck // the test is over
	if _, err := policy.Parse("second.yaml", []byte(file)); err == nil || !strings.HasPrefix(err.Error(), "second.yaml: name: ") || !strings.Contains(err.Error(), "write the field name") {
		t.Errorf("the second file: %v", err)
	}
	second, err := policy.Parse("second.yaml", []byte("name: second\n"+file))
	must(t, err, second.Close(), first.Close(), core.Must(policy.Parse("third.yaml", []byte(file))).Close())
	const inRedis = "{store: {redis: {address: 'a:1'}}, policies: [{name: a, limits: 1/h}]}"
	must(t, core.Must(policy.Parse("f", []byte(inRedis))).Close(), core.Must(policy.Parse("f", []byte(inRedis))).Close())
}

// With tls: true, a server whose certificate cannot be verified gets no password: the connection ends in the handshake.
func TestTLS(t *testing.T) {
	https := httptest.NewTLSServer(nil) // for its certificate, which it has signed itself
	defer https.Close()
	for _, store := range []string{
		"{redis: {address: '%s', tls: true, password: p, timeout: 20s}}",
		"{redis: {address: '%s', tls: true, password: p, timeout: 20s, cluster: true}}",
		"{synced: {redis: {address: '%s', tls: true, password: p, timeout: 20s}}}",
	} {
		listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
		must(t, err)
		shaken := make(chan error, 100)
		go func() {
			for {
				conn, err := listener.Accept()
				if err != nil {
					return // the test has ended
				}
				shaken <- tls.Server(conn, &tls.Config{Certificates: https.TLS.Certificates, MinVersion: tls.VersionTLS12}).HandshakeContext(t.Context())
				_ = conn.Close()
			}
		}()
		set, err := policy.Parse("f.yaml", []byte("store: "+fmt.Sprintf(store, listener.Addr())+sharedAndLocal), policy.Log(slog.New(slog.DiscardHandler)), policy.AnotherInstance())
		must(t, err)
		set.Check(get("/shared"))
		var alert *net.OpError
		if err := <-shaken; !errors.As(err, &alert) {
			t.Errorf("%s: the handshake: %v, want an alert of the client about the certificate", store, err)
		}
		_ = listener.Close()
		if err := set.Close(); err != nil && !strings.Contains(store, "synced") {
			t.Error(err)
		}
	}
}

// local.max-keys bounds the keys in the process: at the bound, a new key makes an old one forgotten.
func TestMaxKeys(t *testing.T) {
	set := core.Must(policy.Parse("f", []byte("{local: {max-keys: 1}, policies: [{name: a, key: ip, limits: 2/h}]}")))
	defer set.Close() //nolint:errcheck // the test is over
	for i := range 103 {
		if d := set.Check(get("/", floodgatetest.From(fmt.Sprintf("192.0.2.%d:5", i%101)))); !d.Allowed || i > 100 && d.Remaining != 1 {
			t.Errorf("request %d: %v", i, d)
		}
	}
}

// What a file may say is the same with the file's own store and with another in its place, as
// floodgate check has it: no file passes the check and fails in the service.
func TestACheckedFileIsTakenByTheService(t *testing.T) {
	const memcached, synced = `memcached: {servers: ["127.0.0.1:1"]}`, `synced: {redis: {address: "127.0.0.1:1"}}`
	for _, c := range []struct {
		store, limits string
		taken         bool
	}{
		{memcached, "1/2591939s fixed_window", true}, // 30 days less 61 seconds
		{memcached, "1/2591940s fixed_window", false},
		{memcached, "1/14d", true},
		{memcached, "1/15d", false},
		{synced, "1/30d fixed_window aligned", true},
		{synced, "1/30d fixed_window", false},
		{synced, "1/m aligned", true},
		{synced, "1/m sliding_log", false},
	} {
		text := []byte("store: {" + c.store + "}\npolicies: [{name: a, limits: '" + c.limits + "'}]")
		log := policy.Log(slog.New(slog.DiscardHandler))
		memory := core.Must(core.NewMemory(core.MemoryConfig{}))
		checked, checkErr := policy.Parse("f", text, log, policy.WithStore(memory))
		served, serveErr := policy.Parse("f", text, log, policy.AnotherInstance())
		if (checkErr == nil) != c.taken || (serveErr == nil) != c.taken {
			t.Errorf("%s, %s: the check says %v, the service says %v, taken: %t", c.store, c.limits, checkErr, serveErr, c.taken)
		}
		if !c.taken && checkErr != nil && serveErr != nil && checkErr.Error() != serveErr.Error() {
			t.Errorf("%s, %s: the check says\n%v\nthe service says\n%v", c.store, c.limits, checkErr, serveErr)
		}
		for _, set := range []*policy.Set{checked, served} {
			if set != nil {
				if err := set.Close(); err != nil && c.store != synced {
					t.Error(err)
				}
			}
		}
		if err := memory.Close(); err != nil {
			t.Error(err)
		}
	}
}

// The name, the store and the place of local counters cannot change while a program
// runs. The error says where the file has changed.
func TestChangesThatNeedARestart(t *testing.T) {
	const rest = "\npolicies: [{name: a, limits: 1/h}]"
	const before = "name: n\nlocal: {max-keys: 10}\nstore: {redis: {address: 'a:1'}}" + rest
	for text, want := range map[string]string{
		before: "",
		"name: other\nlocal: {max-keys: 10}\nstore: {redis: {address: 'a:1'}}" + rest:                    "f: name: has changed (another name needs a restart: it names the counters)",
		"name: n\nlocal: {max-keys: 11}\nstore: {redis: {address: 'a:1'}}" + rest:                        "f: local.max-keys: has changed (another number needs a restart)",
		"name: n\nlocal: {max-keys: 10}" + rest:                                                          "f: store: has changed (another store needs a restart)",
		"name: n\nlocal: {max-keys: 10}\nstore: {redis: {address: 'a:1', timeout: 1s}}" + rest:           "f:3:8: store: has changed (another store needs a restart)",
		"name: n\nlocal: {max-keys: 10}\nstore: {memcached: {servers: 'a:1'}}" + rest:                    "f:3:8: store: has changed (another store needs a restart)",
		"name: n\nlocal: {max-keys: 10}\nstore: {redis: {address: 'a:1'}, instances: 2}" + rest:          "f:3:8: store: has changed (another store needs a restart)",
		"name: n\nlocal: {max-keys: 10}\nstore: {redis: {address: 'a:1'}, on-failure: fail-open}" + rest: "f:3:8: store: has changed (another store needs a restart)",
		// The same store, with the defaults written out.
		"name: n\nlocal: {max-keys: 10}\nstore: {redis: {address: [\"a:1\"], db: 0, timeout: 100ms}, instances: 1, on-failure: local}" + rest: "",
	} {
		set, err := policy.Parse("f", []byte(before))
		must(t, err)
		got := ""
		if err := set.Replace([]byte(text)); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s\nsays %q\nwant %q", text, got, want)
		}
		must(t, set.Close())
	}
}

const marker = "HUNTER2"

// shows parses a file, and returns whether its errors have the marker.
func shows(t *testing.T, text string) (error, bool) {
	t.Helper()
	memory := core.Must(core.NewMemory(core.MemoryConfig{}))
	defer memory.Close() //nolint:errcheck // it is not used
	set, err := policy.Parse("f", []byte(text), policy.WithStore(memory), policy.Log(slog.New(slog.DiscardHandler)))
	if err != nil {
		return err, strings.Contains(err.Error(), marker)
	}
	must(t, set.Close())
	return nil, false
}

// A password without quotes, of which YAML makes something else, is in no error.
func TestNoErrorShowsAPassword(t *testing.T) {
	wrong := 0
	for _, before := range []string{"", "!", "!!", "!<", "*", "&", "|", ">", "|9", "%", "@", "`", "'", "\"", "[", "]", "$", "\"\\q", "!!int ", "|\n  ", "a: ", "- "} {
		for _, form := range []string{"store:\n  redis:\n    address: a:1\n    password: %\n", "store: {redis: {address: a:1, password: %}}\n", "store: {synced: {redis: {address: a:1, password: %}}}\n"} {
			if strings.Contains(form, "{") && before == "]" || before == "a: " && !strings.Contains(form, "{") {
				continue // then it is the name of a field
			}
			text := strings.Replace(form, "%", before+marker, 1) + "policies: [{name: a, limits: 1/s aligned}]\n"
			err, shown := shows(t, text)
			if shown {
				t.Errorf("%q: %v", text, err)
			}
			if err != nil {
				wrong++
			}
		}
	}
	if wrong < 20 {
		t.Errorf("%d files have errors: the test says nothing", wrong)
	}
}

// Nothing that stands before an @ in an address is in an error.
func FuzzPasswordsInAddresses(f *testing.F) {
	for _, s := range []string{"", "redis://u:", "redis://:", "u:", "?", "://", "@", "/", "a:1@", strings.Repeat("x", 70)} {
		f.Add(s, "")
		f.Add("postgres://", s)
		f.Add(s, s)
	}
	f.Fuzz(func(t *testing.T, before, behind string) {
		quoted, err := json.Marshal(before + marker + behind + "@h:6379")
		must(t, err)
		for _, form := range []string{
			"%", "{redis: %}", "{memcached: %}", "{synced: %}", "{synced: {redis: %}}", "{%: 1}", "{redis: {%: 1}}",
			"{redis: {address: %}}", "{redis: {address: [%, %]}}", "{redis: {address: a:1, db: %}}", "{redis: {address: a:1, timeout: %}}", "{redis: {address: a:1, tls: %}}", "{memcached: {servers: [%]}}",
			"{synced: {redis: {address: %}}}", "{redis: {address: a:1}, on-failure: %}",
		} {
			text := "store: " + strings.ReplaceAll(form, "%", string(quoted)) + "\npolicies: [{name: a, limits: 1/s aligned}]"
			if err, shown := shows(t, text); err == nil || shown {
				t.Errorf("%s: %v", text, err)
			}
		}
	})
}
