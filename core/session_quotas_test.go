package core

import (
	"strings"
	"testing"
)

// A session that is used again has no quotas: they would pile up.
func TestAReleasedSessionHasNoQuotas(t *testing.T) {
	l := Must(New(Config{Rules: []Rule{{Name: "r", Key: TakeOnly, Limits: []Limit{PerMinute(5)}}}}))
	c := l.session(l.current.Load())
	if err := c.addHits(1, []Hit{{Rule: "r", Key: "k", Quotas: []int64{7}}}); err != nil || len(c.quotas) != 1 {
		t.Fatal(c.quotas, err)
	}
	if l.release(c, nil); len(c.quotas) != 0 {
		t.Errorf("the quotas %d are left", c.quotas)
	}
}

// A hit without quotas beside one with some has its limits' own.
func TestAHitWithoutQuotasBesideOneWithSome(t *testing.T) {
	l := Must(New(Config{Rules: []Rule{
		{Name: "a", Key: TakeOnly, Limits: []Limit{PerMinute(5)}},
		{Name: "b", Key: TakeOnly, Limits: []Limit{PerMinute(6), PerHour(9)}},
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
