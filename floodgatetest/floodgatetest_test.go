package floodgatetest_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	httplimit "github.com/floodgate-go/floodgate/adapters/nethttp"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/floodgatetest"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

// recorder is a testing.TB that keeps its errors.
type recorder struct {
	testing.TB
	errors []string
	helper bool
}

func (r *recorder) Helper() { r.helper = true }

func (r *recorder) Errorf(format string, args ...any) {
	r.errors = append(r.errors, fmt.Sprintf(format, args...))
}

func (r *recorder) Fatal(args ...any) {
	r.errors = append(r.errors, fmt.Sprint(args...))
	panic(r)
}

func rules(quota int64) []core.Rule {
	return []core.Rule{{Name: "ip", Key: keyfuncs.ClientIP(), Limits: []core.Limit{{Quota: quota, Window: time.Minute, Algorithm: core.FixedWindow}}}}
}

func TestALimiterFollowsTheClock(t *testing.T) {
	clock := floodgatetest.NewClock()
	l := floodgatetest.NewLimiter(t, clock, core.Config{Rules: rules(2)})
	r := floodgatetest.NewRequest("GET", "/")
	for range 2 {
		floodgatetest.WantAllowed(t, l.Check(r))
	}
	clock.Advance(20 * time.Second)
	floodgatetest.WantDenied(t, l.Check(r), 40*time.Second)
	clock.Set(clock.Now().Add(40 * time.Second))
	d := l.Check(r)
	floodgatetest.WantAllowed(t, d)
	floodgatetest.WantRemaining(t, d, "ip", 1)
	clock.Advance(-time.Hour)
	clock.Set(clock.Now().Add(-time.Hour))
	if got := clock.Now(); !got.Equal(time.Date(2025, 12, 31, 22, 1, 0, 0, time.UTC)) {
		t.Errorf("two hours and a minute back and forth: %v", got)
	}
}

func TestWantFunctionsReportTheDecision(t *testing.T) {
	clock := floodgatetest.NewClock()
	l := floodgatetest.NewLimiter(t, clock, core.Config{Rules: rules(1)})
	r := floodgatetest.NewRequest("GET", "/", floodgatetest.From("198.51.100.7:80"))
	allowed, denied := l.Check(r), l.Check(r)
	store := core.Must(core.NewMemory(core.MemoryConfig{}))
	gone := floodgatetest.NewLimiter(t, clock, core.Config{Rules: rules(1), Store: store})
	_ = store.Close()
	failed := gone.Check(r)
	dry := floodgatetest.NewLimiter(t, clock, core.Config{Rules: rules(0), DryRun: true}).Check(r)
	slides := floodgatetest.NewLimiter(t, clock, core.Config{Rules: []core.Rule{{Key: keyfuncs.ClientIP(), Limits: []core.Limit{core.PerMinute(1)}}}})
	slides.Check(r)
	sliding, two := slides.Check(r), floodgatetest.NewLimiter(t, clock, core.Config{Rules: rules(2)}).Check(r)
	for _, row := range []struct {
		name string
		want func(t testing.TB)
		text string // of the error; "": none
	}{
		{"allowed", func(t testing.TB) { floodgatetest.WantAllowed(t, allowed) }, ""},
		{"denied, not allowed", func(t testing.TB) { floodgatetest.WantAllowed(t, denied) }, "denied, want it allowed"},
		{"dryRun, not allowed", func(t testing.TB) { floodgatetest.WantAllowed(t, dry) }, "only in a dry run"},
		{"failed, not allowed", func(t testing.TB) { floodgatetest.WantAllowed(t, failed) }, `denied, want it allowed: limiter "default" denies, because it could not decide; the error is: in-process counters: floodgate: store is closed`},
		{"denied", func(t testing.TB) { floodgatetest.WantDenied(t, denied, time.Minute) }, ""},
		{"denied for a millisecond more", func(t testing.TB) { floodgatetest.WantDenied(t, denied, time.Minute-time.Millisecond) }, "RetryAfter is 1m0s"},
		{"denied until a sliding window ends", func(t testing.TB) { floodgatetest.WantDenied(t, sliding, time.Minute) }, ""},
		{"dry run", func(t testing.TB) { floodgatetest.WantDenied(t, dry, core.Never) }, ""},
		{"denied for ever, not for a while", func(t testing.TB) { floodgatetest.WantDenied(t, dry, 0) }, "want 0s"},
		{"allowed, not denied", func(t testing.TB) { floodgatetest.WantDenied(t, allowed, time.Minute) }, "allowed, want it denied"},
		{"denied for another time", func(t testing.TB) { floodgatetest.WantDenied(t, denied, time.Hour) }, "RetryAfter is 1m0s, want 1h0m0s"},
		{"failed, not denied", func(t testing.TB) { floodgatetest.WantDenied(t, failed, 0) }, "another reason"},
		{"as many left", func(t testing.TB) { floodgatetest.WantRemaining(t, allowed, "ip", 0) }, ""},
		{"others left", func(t testing.TB) { floodgatetest.WantRemaining(t, two, "ip", 3) }, `rule "ip" has 1 hits left, want 3`},
		{"another rule", func(t testing.TB) { floodgatetest.WantRemaining(t, allowed, "user", 3) }, `rule "user" did not apply`},
	} {
		rec := &recorder{TB: t}
		row.want(rec)
		switch got := strings.Join(rec.errors, "\n"); {
		case (got == "") != (row.text == ""), !strings.Contains(got, row.text), got != "" && !strings.Contains(got, `: limiter "default" `), !rec.helper:
			t.Errorf("%s: reports %q, want %q", row.name, got, row.text)
		case got != "" && strings.HasPrefix(row.name, "denied") && !strings.Contains(got, `"198.51.100.7"`):
			t.Errorf("%s: the key is not in %q", row.name, got)
		}
	}
}

func TestNewLimiterEndsTheTestIfTheConfigurationIsInvalid(t *testing.T) {
	rec := &recorder{TB: t}
	defer func() {
		if recover() != rec || len(rec.errors) != 1 || !rec.helper || !strings.Contains(rec.errors[0], "Rules") {
			t.Errorf("reports %q", rec.errors)
		}
	}()
	floodgatetest.NewLimiter(rec, floodgatetest.NewClock(), core.Config{})
}

func TestRequestHasWhatItsOptionsSet(t *testing.T) {
	type key struct{}
	ctx := context.WithValue(t.Context(), key{}, "of the context")
	r := floodgatetest.NewRequest("POST", "/a%2Fb?x=1&x=2&y=",
		floodgatetest.From("198.51.100.7:80"), floodgatetest.Header("X-A", "1"), floodgatetest.Header("x-a", "2"), floodgatetest.Cookie("sid", "c"),
		floodgatetest.Route("/{id}"), floodgatetest.Value("user", 7), floodgatetest.Context(ctx), floodgatetest.Form("name", "a b"), floodgatetest.Form("n&", "é"))
	x, hasX := r.Query("x")
	y, hasY := r.Query("y")
	_, hasZ := r.Query("z")
	sid, hasSid := r.Cookie("sid")
	_, hasOther := r.Cookie("other")
	body, err := r.Body(9)
	whole, _ := r.Body(1000)
	none, _ := r.Body(-1)
	got := fmt.Sprint(r.Method(), " ", r.Path(), " ", r.EscapedPath(), " ", r.Route(), " ", r.RemoteAddr(), " ", r.HeaderValues("X-A"), " ", r.HeaderValues("host"), " ",
		x, hasX, y, hasY, hasZ, " ", r.RawQuery(), " ", sid, hasSid, hasOther, " ", r.Value("user"), r.Value(key{}), r.Context() == ctx, " ", string(body), err, " ", string(whole), len(none), " ", r.HeaderValues("Content-Type"))
	const want = "POST /a/b /a%2Fb /{id} 198.51.100.7:80 [1 2] [example.com] 1truetrue false x=1&x=2&y= ctrue false 7of the contexttrue name=a+b&<nil> name=a+b&n%26=%C3%A90 [application/x-www-form-urlencoded]"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	for _, path := range []string{"/a", "/a%41", "/%7Ea/%2f"} {
		if got := floodgatetest.NewRequest("GET", path).EscapedPath(); got != path {
			t.Errorf("the escaped path is %s, want %s", got, path)
		}
	}
	if j, _ := floodgatetest.NewRequest("PUT", "/", floodgatetest.JSON(`{"a":1}`)).Body(99); string(j) != `{"a":1}` {
		t.Errorf("the body is %s", j)
	}
}

// A key function or hook that asks httplimit for the *http.Request gets that of the test.
func TestTheHTTPRequest(t *testing.T) {
	r := floodgatetest.NewRequest("GET", "/items/7", floodgatetest.Header("X-User", "ann"), floodgatetest.Route("/items/{id}"), floodgatetest.Context(t.Context()))
	h, ok := httplimit.Request(r)
	if !ok || h.URL.Path != "/items/7" || h.Header.Get("X-User") != "ann" || h.Pattern != "/items/{id}" || h.Context() != t.Context() {
		t.Errorf("%v, %v", h, ok)
	}
}
