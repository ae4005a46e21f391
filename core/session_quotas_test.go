package core

import (
	"strings"
	"testing"
)

// A session that is used again has no quotas, which would pile up, and nothing else of the last decision.
func TestAReleasedSessionHasNothingOfItsDecision(t *testing.T) {
	l := Must(New(Config{Rules: []Rule{{Name: "r", Limits: []Limit{PerMinute(5)}}}}))
	c := l.session(l.current.Load())
	if err := c.addHits(1, []Hit{{Rule: "r", Key: "k", Quotas: []int64{7}}}); err != nil || len(c.quotas) != 1 {
		t.Fatal(c.quotas, err)
	}
	c.ask.body.Request = &bodyProbe{}
	if l.release(c); len(c.quotas) != 0 {
		t.Errorf("the quotas %d are left", c.quotas)
	}
	if c.snap != nil || c.ask.body.Request != nil {
		t.Error("the configuration or the request of the last decision is kept in memory")
	}
}

// Keys that are longer than all others do not stay in memory.
func TestASessionWithLongKeysIsNotUsedAgain(t *testing.T) {
	l := Must(New(Config{Rules: []Rule{{Name: "r", Limits: []Limit{PerMinute(5)}}}}))
	for range 10 {
		if _, err := l.Take(t.Context(), 1, Hit{Rule: "r", Key: strings.Repeat("k", 1<<20), Extra: "x"}); err != nil {
			t.Fatal(err)
		}
		if c := l.session(l.current.Load()); cap(c.keys) > 1<<20 {
			t.Fatalf("a session with room for %d bytes of keys is used again", cap(c.keys))
		}
	}
}

// A hit without quotas beside one with some has its limits' own.
func TestAHitWithoutQuotasBesideOneWithSome(t *testing.T) {
	l := Must(New(Config{Rules: []Rule{
		{Name: "a", Limits: []Limit{PerMinute(5)}},
		{Name: "b", Limits: []Limit{PerMinute(6), PerHour(9)}},
	}}))
	d, err := l.Take(t.Context(), 1, Hit{Rule: "a", Key: "k", Quotas: []int64{50}}, Hit{Rule: "b", Key: "k"})
	if err != nil || !d.Allowed {
		t.Fatal(d, err)
	}
	want := `"a";q=50;w=60, "b-1m";q=6;w=60, "b-1h";q=9;w=3600`
	for _, h := range d.AppendHeaders(nil) {
		if strings.EqualFold(h.Name, "RateLimit-Policy") && h.Value != want {
			t.Errorf("%s, want %s", h.Value, want)
		}
	}
}
