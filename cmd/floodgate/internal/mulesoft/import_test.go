package mulesoft_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	httplimit "github.com/floodgate-go/floodgate/adapters/nethttp"
	"github.com/floodgate-go/floodgate/cmd/floodgate/internal/mulesoft"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/policy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// limited imports a file and returns an application with its policies, in which time
// passes as now says.
func limited(t interface {
	Fatal(...any)
	Cleanup(func())
}, dir, file string, now func() time.Time,
) http.Handler {
	result, err := mulesoft.Import([]byte(file))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "limits.yaml")
	if err := os.WriteFile(path, result.Text, 0o600); err != nil {
		t.Fatal(err)
	}
	memory, err := core.NewMemory(core.MemoryConfig{Clock: now})
	if err != nil {
		t.Fatal(err)
	}
	set, err := policy.Load(path, policy.WithStore(memory))
	if err != nil {
		t.Fatal(err, string(result.Text))
	}
	t.Cleanup(func() {
		if err := errors.Join(set.Close(), memory.Close()); err != nil {
			t.Fatal(err)
		}
	})
	return httplimit.Middleware(set)(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
}

// The requests that pass are those of fixed windows that begin with the first request
// of each value of the key, and of which all must have room.
func TestAnImportedPolicyDecidesAsTheOriginal(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		type window struct{ quota, length int }
		windows := []window{
			{rapid.IntRange(1, 4).Draw(t, "quota"), 1000 * rapid.IntRange(1, 10).Draw(t, "seconds")},
			{rapid.IntRange(1, 9).Draw(t, "the other quota"), 1000*rapid.IntRange(1, 60).Draw(t, "the other seconds") + 500},
		}
		file := "policyRef: {name: rate-limiting-flex}\nconfig:\n  keySelector: \"#[attributes.queryParams['id']]\"\n  rateLimits:\n"
		for _, w := range windows {
			file += fmt.Sprintf("  - {maximumRequests: %d, timePeriodInMilliseconds: %d}\n", w.quota, w.length)
		}
		type counter struct{ start, used int }
		counters := map[string]*[2]counter{}
		at, begin := 0, time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
		app := limited(t, dir, file, func() time.Time { return begin.Add(time.Duration(at) * time.Millisecond) })
		for range rapid.IntRange(1, 60).Draw(t, "requests") {
			at += rapid.SampledFrom([]int{0, 0, 1, 499, 500, 1000, 9000}).Draw(t, "wait")
			id := rapid.SampledFrom([]string{"a", "A", ""}).Draw(t, "id")
			if counters[id] == nil {
				counters[id] = &[2]counter{{start: -1 << 30}, {start: -1 << 30}}
			}
			allowed := true
			for i := range windows {
				c := &counters[id][i]
				if at >= c.start+windows[i].length {
					*c = counter{start: at}
				}
				allowed = allowed && c.used < windows[i].quota
			}
			for i := range windows {
				c := &counters[id][i]
				if allowed {
					c.used++
				} else if c.used == 0 {
					c.start = -1 << 30 // a denied request begins no window
				}
			}
			w := httptest.NewRecorder()
			app.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/?id="+id, nil))
			if got := w.Code == http.StatusOK; got != allowed {
				t.Fatalf("at %d ms, %q: allowed %t, want %t\n%s", at, id, got, allowed, file)
			}
		}
	})
}

// A window of spike control holds no more than its quota, wherever it begins.
func TestSpikeControlHasASlidingWindow(t *testing.T) {
	at := time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	app := limited(t, t.TempDir(), "policyRef: {name: spike-control-flex}\nconfig: {maximumRequests: 2, timePeriodInMilliseconds: 1000, delayTimeInMillis: 499, delayAttempts: 0}", func() time.Time { return at })
	for _, step := range []struct {
		wait int // milliseconds
		code int
	}{{0, 200}, {900, 200}, {50, 429}, {50, 200}, {100, 429}, {799, 429}, {1, 200}} {
		at = at.Add(time.Duration(step.wait) * time.Millisecond)
		w := httptest.NewRecorder()
		app.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
		if w.Code != step.code {
			t.Errorf("%d ms later: %d, want %d", step.wait, w.Code, step.code)
		}
	}
}

const flex = "policyRef: {name: rate-limiting-flex}\nconfig:\n  rateLimits: [{maximumRequests: 3, timePeriodInMilliseconds: 6000}]\n"

func TestWhatIsWritten(t *testing.T) {
	const (
		head   = "# Written by floodgate import from a file of MuleSoft's.\n"
		limits = "    limits:\n      - {maximumRequests: 3, timePeriodInMilliseconds: 6000, algorithm: fixed_window}\n"
		alone  = "  # clusterizable is true by default: there is no shared storage in this file: write store: {redis: {address: redis:6379}} at its beginning, and counting: shared\n"
	)
	for name, c := range map[string]struct{ file, want, lost string }{
		"no key":  {flex, head + "policies:\n" + alone + "  - name: rate-limit\n" + limits + "    counting: local\n", ""},
		"headers": {flex + "  exposeHeaders: true\n  clusterizable: false\n", head + "policies:\n  - name: rate-limit\n" + limits + "    headers: x-milliseconds\n    counting: local\n", ""},
		"a key":   {flex + "  clusterizable: false\n  keySelector: \"#[attributes.method]\"\n", head + "policies:\n  - name: rate-limit\n    key: 'method'\n    missing: own-bucket\n" + limits + "    counting: local\n", ""},
		"a shared storage": {
			"kind: Configuration\nspec: {sharedStorage: {redis: {address: 'redis:6379', username: u, password: hush, DB: 2}}}\n---\nkind: PolicyBinding\nmetadata: {name: per method}\nspec:\n  targetRef: {name: shop}\n  policyRef: {name: rate-limiting-flex}\n" +
				"  config: {rateLimits: [{maximumRequests: 3, timePeriodInMilliseconds: 6000}, {maximumRequests: 5, timePeriodInMilliseconds: 6000}], blockOnUnknownQuota: true}\n",
			head + "store:\n  redis:\n    address: 'redis:6379'\n    user: 'u'\n    password: {env: REDIS_PASSWORD} # the password stays out of this file\n    db: 2\n  on-failure: fail-closed # blockOnUnknownQuota: true\npolicies:\n" +
				"  # of the limits 3 and 5 in 6000 ms, only the smaller one matters\n  - name: per-method\n" + limits + "    counting: shared\n",
			"",
		},
		"a comment that reads like a field": {
			flex + "  keySelector: 'counting: shared'\n---\nspec: {sharedStorage: {redis: {address: 'redis:6379'}}}\n",
			head + "store:\n  redis:\n    address: 'redis:6379'\npolicies:\n  # keySelector \"counting: shared\" is no expression: all requests share one counter\n  - name: rate-limit\n" + limits + "    counting: shared\n",
			"",
		},
		"explicitly shared": {flex + "  clusterizable: true\n", "", "rate-limit: clusterizable: true: there is no shared storage in this file"},
		"an unknown field":  {flex + "  burst: 3\n", "  # NOT TRANSLATED: burst is not known\n", "rate-limit: burst is not known"},
		"rules":             {flex + "rules: [{path: /a}]\n", "NOT TRANSLATED: rules", "rate-limit: rules: this policy applies to all requests"},
		"spike control":     {"[{policyRef: {name: spike-control-flex}, config: {maximumRequests: 1, timePeriodInMilliseconds: 1000, delayTimeInMillis: 250, delayAttempts: 2, exposeHeaders: true}}]", "  - name: spike-control\n    limits:\n      - {maximumRequests: 1, timePeriodInMilliseconds: 1000, algorithm: sliding_log}\n    wait: 500ms\n    headers: x-milliseconds\n    counting: local\n", ""},
		"another policy":    {flex + "---\npolicyRef: {name: jwt-validation-flex}\n", "NOT TRANSLATED", `rate-limit-2: policyRef.name: "jwt-validation-flex" is no rate limiting policy`},
		"tiers":             {flex + "---\npolicyRef: {name: rate-limiting-sla-based-flex}\n", "NOT TRANSLATED", "rate-limit-2: the limits of rate-limiting-sla-based-flex are in the contracts of API Manager"},
		"an expression":     {flex + "---\n" + flex + "  keySelector: \"#[payload.id]\"\n", "# NOT TRANSLATED: rate-limit-2: keySelector", `rate-limit-2: keySelector: "#[payload.id]": payload is not translated (write it by hand`},
		"several APIs":      {"spec: {targetRef: {name: a}, policyRef: {name: rate-limiting-flex}, config: {clusterizable: false, rateLimits: [{maximumRequests: 1, timePeriodInMilliseconds: 1}]}}\n---\n" + flex, "", "rate-limit: the API a: this policy applies to the requests of all APIs"},
	} {
		result, err := mulesoft.Import([]byte(c.file))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got, lost := string(result.Text), strings.Join(result.Lost, "\n")
		if strings.HasPrefix(c.want, head) && got != c.want || !strings.Contains(got, c.want) || !strings.HasPrefix(lost, c.lost) || (lost == "") != (c.lost == "") {
			t.Errorf("%s: lost %q, writes\n%s\nwant lost %q and\n%s", name, lost, got, c.lost, c.want)
		}
		if strings.Contains(got, "hush") {
			t.Errorf("%s: the password is written", name)
		}
	}
}

func TestWhatIsNotImported(t *testing.T) {
	for file, want := range map[string]string{
		"":                                      "no policy can be translated: there is no policyRef (want policyRef: {name: rate-limiting-flex} and config)",
		"a: 1":                                  "no policy can be translated: a document without policies is not translated",
		"a: [":                                  "is no YAML",
		strings.Repeat("[", 60_000):             "brackets are nested more than 200 deep",
		strings.Repeat("- ", 32_000):            "lists are nested more than 200 deep",
		strings.Repeat("a:\n", 1001):            "line 1001: a mapping has more than 1000 fields",
		"a: &x 1\nb: *x":                        "aliases are not read",
		strings.Repeat(" ", 64<<10) + "a":       "has 65537 bytes: at most 65536",
		"policyRef: {name: rate-limiting-flex}": "rateLimits is missing (want a list of {maximumRequests: 3, timePeriodInMilliseconds: 10000})",
		"policyRef: {name: rate-limiting-flex}\nconfig: {rateLimits: [{maximumRequests: 0, timePeriodInMilliseconds: 1}]}":  "rateLimits[0]: maximumRequests: 0: want a whole number from 1 to 2147483647",
		"policyRef: {name: rate-limiting-flex}\nconfig: {rateLimits: [{maximumRequests: x, timePeriodInMilliseconds: -1}]}": "rateLimits[0]: maximumRequests: x: want a whole number from 1 to 2147483647; timePeriodInMilliseconds: -1: want a whole number from 1 to 31622400000",
		"policyRef: {name: rate-limiting-flex}\nconfig: {rateLimits: [{maximumRequests: 5}]}":                               "rateLimits[0]: timePeriodInMilliseconds is missing (want a whole number from 1 to 31622400000)",
		flex + "  keySelector: 7":                                     "keySelector: 7: want text",
		flex + "  keySelector: \"#[attributes.headers['a b']]\"":      `header["a b"]`,
		"policyRef: {name: rate-limiting-sla-based-flex}\nconfig: {}": "write a policy with key, and with tiers",
	} {
		result, err := mulesoft.Import([]byte(file))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: %v, want %s; writes %s", file, err, want, result.Text)
		}
	}
}

func TestKeySelectors(t *testing.T) {
	for selector, want := range map[string]string{
		"": "", "all": "", "#[attributes.method]": "method", "#[ attributes.requestPath ]": "path", "#[attributes.remoteAddress]": "ip",
		"#[attributes.queryParams['identifier']]": `query["identifier"]`, "#[attributes.queryParam['customIdentifier']]": `query["customIdentifier"]`,
		"#[attributes.queryParams.id]": `query["id"]`, `#[attributes.headers."Client_ID"]`: `header["client_id"]`, "#[attributes['headers']['x']]": `header["x"]`,
		"#[attributes.headers['x'] default 'none']":                                                          `(header["x"] != "" ? header["x"] : "none")`,
		"#[output application/java --- attributes.method]":                                                   "method",
		"#[%dw 2.0\noutput application/json\n---\nattributes.method]":                                        "method",
		"#[attributes.method ++ ' ' ++ attributes.requestPath]":                                              `((method + " ") + path)`,
		"#[(attributes.headers['x'] default 'n') ++ attributes.method]":                                      `(((header["x"] != "" ? header["x"] : "n")) + method)`,
		"#[if (attributes.method == 'GET' or attributes.method == 'HEAD') 'read' else 'write']":              `(((method == "GET") or (method == "HEAD")) ? "read" : "write")`,
		"#[(attributes.remoteAddress startsWith '10.') or (attributes.remoteAddress startsWith '192.168.')]": `(((ip startsWith "10.")) or ((ip startsWith "192.168.")))`,
		"#[lower(attributes.headers['x'])]":                                                                  `lower(header["x"])`, "#[!(attributes.method != 'GET')]": `(not ((method != "GET")))`,
	} {
		key, err := mulesoft.Translate(selector)
		if err != nil || key.Expression != want {
			t.Errorf("%s: %s, %v, want %s", selector, key.Expression, err, want)
		}
		if want != "" {
			set, err := policy.Parse("x", fmt.Appendf(nil, "policies: [{name: a, key: %q, missing: own-bucket, limits: 1/s}]", want))
			if err != nil {
				t.Errorf("%s: %v", want, err)
				continue
			}
			if err := set.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	for selector, want := range map[string]string{
		"#[attributes.method": "#[ has no ] at its end", "#[]": "the end is not translated", "#[payload.id]": "payload is not translated",
		"#[attributes.version]": "attributes.version is not translated", "#[attributes.headers]": "want a name, such as attributes.headers['x']",
		"#[attributes.headers[x]]": "x is where a name is expected", "#['a' default 'b']": "default is translated behind one attribute only",
		"#[attributes.method ++ attributes.headers['x'] default 'n' ++ 'y']": "follows default: put the part with default in parentheses",
		"#['a$(b)']": "has an escape or a $", "#['a]": "has no ' at its end", "#[if ('a') 'b']": "the end is where else is expected",
		"#['a' == 'b' == 'c']": "follows another comparison", "#[" + strings.Repeat("(", 99) + "]": "more than 50 parts", "#[attributes.method matches /a/]": "matches is not translated",
		"#[" + strings.Repeat("a", 5000) + "]": "at most 4096", "#[\x01]": "is not known here", "#[attributes.queryParam[‘customIdentifier’]]": "write straight quotes",
	} {
		if key, err := mulesoft.Translate(selector); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80s: %s, %v, want %s", selector, key.Expression, err, want)
		}
	}
}

func TestDefaultIsRemarkedOn(t *testing.T) {
	key, err := mulesoft.Translate(`#[attributes.headers['x'] default 'none']`)
	if err != nil || len(key.Remarks) != 1 || key.Remarks[0] != "with default, a value that is empty counts as missing" {
		t.Errorf("%q, %v", key.Remarks, err)
	}
}

// Any file gives a policy file that loads, or an error.
func FuzzImport(f *testing.F) {
	f.Add([]byte(flex + "  keySelector: \"#[attributes.headers['x'] default 'y']\"\n"))
	f.Add([]byte("spec: {sharedStorage: {redis: {address: 'a:1', db: 1}}}\n---\nspec: {policies: [{policyRef: {name: spike-control-flex}, config: {maximumRequests: 1, timePeriodInMilliseconds: 1}}]}"))
	f.Add([]byte("metadata: {name: \"a\\u2028\\x1b\"}\nspec: {policyRef: {name: x}, rules: 1}"))
	f.Fuzz(func(t *testing.T, file []byte) {
		result, err := mulesoft.Import(file)
		if err != nil {
			if result.Text != nil {
				t.Errorf("an error and a file: %s", result.Text)
			}
			return
		}
		memory, err := core.NewMemory(core.MemoryConfig{MaxKeys: 1})
		if err != nil {
			t.Fatal(err)
		}
		set, err := policy.Parse("imported", result.Text, policy.WithStore(memory))
		if err != nil {
			t.Fatalf("%v\n%s", err, result.Text)
		}
		if strings.Contains(string(result.Text), "NOT TRANSLATED") != (len(result.Lost) > 0) {
			t.Errorf("lost %q of\n%s", result.Lost, result.Text)
		}
		if err := errors.Join(set.Close(), memory.Close()); err != nil {
			t.Error(err)
		}
	})
}
