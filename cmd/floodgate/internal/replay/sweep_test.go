package replay

import (
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/policy"
)

func TestScaledQuotas(t *testing.T) {
	for _, c := range []struct {
		quota, burst int64
		algorithm    core.Algorithm
		factor       float64
		want, wantB  int64
	}{
		{10, 0, core.FixedWindow, 0.5, 5, 0}, {10, 4, core.TokenBucket, 2, 20, 8}, {0, 0, core.FixedWindow, 10, 0, 0}, {1, 0, core.FixedWindow, 0.1, 1, 0}, {3, 1, core.TokenBucket, 0.35, 1, 1},
		{5, 0, core.FixedWindow, 0.5, 3, 0}, {5, 0, core.FixedWindow, 0.35, 2, 0}, {7, 0, core.FixedWindow, 1, 7, 0}, {core.MaxQuota, 0, core.FixedWindow, 10, core.MaxQuota, 0},
		{core.MaxQuota / 2, 0, core.FixedWindow, 2, core.MaxQuota - 1, 0}, {core.MaxLogQuota, 0, core.SlidingLog, 1.5, core.MaxLogQuota, 0}, {core.MaxLogQuota, 0, core.FixedWindow, 2, 2 * core.MaxLogQuota, 0},
	} {
		l := core.Limit{Quota: c.quota, Burst: c.burst, Algorithm: c.algorithm}
		if scale(&l, c.factor); l.Quota != c.want || l.Burst != c.wantB {
			t.Errorf("%d and %d of %v by %g: %d and %d, want %d and %d", c.quota, c.burst, c.algorithm, c.factor, l.Quota, l.Burst, c.want, c.wantB)
		}
	}
}

// Each policy is tried with each factor by itself, with counters of its own, and what
// it answers is what the file's own quota says.
func TestASweepCountsEachQuotaByItself(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	s, err := newSweep("f", []byte("policies: [{name: a, limits: [10/h, 4/m name=m]}]"), func() time.Time { return now }, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.close(); err != nil {
			t.Error(err)
		}
	}()
	for range 20 {
		s.check(&request{missing: map[string]bool{}})
	}
	curve := s.curves()[0]
	if len(s.curves()) != 1 || curve.Policy != "a" || curve.Requests != 20 || len(curve.Points) != len(factors) {
		t.Errorf("%+v", curve)
	}
	for i, p := range curve.Points {
		m := max(1, int64(4*factors[i]+0.5))
		h := max(1, int64(10*factors[i]+0.5))
		if want := max(0, 20-min(m, h)); p.Factor != factors[i] || p.Denied != want || len(p.Quotas) != 2 || p.Quotas[0] != h || p.Quotas[1] != m || len(p.Limits) != 2 {
			t.Errorf("× %g: %+v, want %d denied by %d and %d", factors[i], p, want, h, m)
		}
	}
	s.store.current = s.policies[0]
	if d := s.policies[0].only.Check(&request{missing: map[string]bool{}}); d.Allowed || d.Remaining != 0 || d.Limit().Quota != 4 {
		t.Errorf("the answer is %v, want that of the file's own quotas", d)
	}
}

func TestASweepOfABrokenFile(t *testing.T) {
	if s, err := newSweep("f", []byte("policies: []"), time.Now, nil); err == nil {
		t.Error("it is taken", s.close())
	}
}

// The quotas that requests have of their own are multiplied as those of limits are.
func TestASweepOfQuotasOfKeys(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	var user string
	s, err := newSweep("f", []byte("policies: [{name: a, key: user, missing: reject, limits: [10/h token_bucket burst=5, 4/m], quotas: {ann: '8/m, 20/h', bob: unlimited}}]"), func() time.Time { return now },
		[]policy.Option{policy.WithUser(func(core.Request) string { return user })})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.close(); err != nil {
			t.Error(err)
		}
	}()
	scaled := func(n, f float64) int64 { return max(1, int64(n*f+0.5)) }
	want := make([]int64, len(factors))
	for _, user = range []string{"ann", "bob", "eve"} {
		for range 20 {
			s.check(&request{missing: map[string]bool{}})
		}
		for i, f := range factors {
			switch user {
			case "ann": // the burst is in proportion to the quota
				burst := scaled(5, f) * scaled(20, f) / scaled(10, f)
				want[i] += max(0, 20-min(burst, scaled(8, f)))
			case "eve":
				want[i] += max(0, 20-min(scaled(5, f), scaled(4, f)))
			}
		}
	}
	for i, p := range s.curves()[0].Points {
		if p.Denied != want[i] {
			t.Errorf("× %g: %d denied, want %d", factors[i], p.Denied, want[i])
		}
	}
}
