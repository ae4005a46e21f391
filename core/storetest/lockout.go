package storetest

import (
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// lockouts tests core.Lockout in a store: waits of 1, 3 and 5 seconds.
func (s *suite) lockouts(t *testing.T) {
	limit := core.Limit{
		Quota: 2, Window: 10 * time.Second, Algorithm: core.FixedWindow,
		Lockout: core.Lockout{First: time.Second, Factor: 3, Max: 5 * time.Second, Decay: 20 * time.Second},
	}
	for name, f := range map[string]func(p *lockoutPlay){
		"waits grow up to the longest": func(p *lockoutPlay) {
			for _, seconds := range []int{1, 3, 5, 5, 5} {
				p.fill(time.Duration(seconds) * time.Second)
				p.sitOut()
			}
		},
		"a wait is forgotten for each Decay after the last one's end": func(p *lockoutPlay) {
			for range 5 {
				p.fill(0)
				p.sitOut()
			}
			p.clock.Advance(60*time.Second - time.Microsecond)
			p.fill(3 * time.Second)
			p.sitOut()
			p.clock.Advance(40 * time.Second)
			p.fill(time.Second)
		},
		"what is denied makes no wait longer": func(p *lockoutPlay) {
			p.fill(time.Second)
			for range 5 {
				p.clock.Advance(100 * time.Millisecond)
				if p.take("k", 1).Allowed {
					p.t.Fatal("allowed during the wait")
				}
			}
			p.locked(500 * time.Millisecond)
		},
		"a refund that makes room ends the wait and takes it back": func(p *lockoutPlay) {
			p.take("k", 1)
			filling := p.take("k", 1)
			p.locked(time.Second)
			p.refund(filling)
			if got := p.remaining("k"); got != 1 {
				p.t.Fatalf("%d left after the refund, want 1", got)
			}
			p.take("k", 1)
			p.locked(time.Second)
			p.sitOut()
			p.fill(3 * time.Second)
		},
		"a refund of an earlier hit does too": func(p *lockoutPlay) {
			first := p.take("k", 1)
			p.clock.Advance(time.Millisecond)
			p.take("k", 1)
			p.refund(first)
			if got := p.remaining("k"); got != 1 {
				p.t.Errorf("%d left after the refund, want 1", got)
			}
		},
		"waits before one that was taken back decay from the window's start": func(p *lockoutPlay) {
			for _, later := range []time.Duration{0, time.Microsecond} {
				p.fill(time.Second)
				p.sitOut()
				p.clock.Advance(15 * time.Second)
				p.take("k", 1)
				p.clock.Advance(2 * time.Second)
				p.refund(p.take("k", 1))
				p.clock.Advance(18*time.Second - later) // 20 s after the start of that window
				want := time.Second
				if later > 0 {
					want = 3 * time.Second
				}
				p.fill(want)
				p.reset(p.item(0, "k", 0))
			}
		},
		"a refund after the wait takes nothing back": func(p *lockoutPlay) {
			p.take("k", 1)
			filling := p.take("k", 1)
			p.sitOut()
			p.take("k", 1)
			p.refund(filling)
			if got := p.remaining("k"); got != 1 {
				p.t.Errorf("%d left, want 1", got)
			}
			p.take("k", 1)
			p.locked(3 * time.Second)
		},
		"hits that do not use the quota up leave with the window": func(p *lockoutPlay) {
			for range 5 {
				if !p.take("k", 1).Allowed {
					p.t.Fatal("denied")
				}
				p.clock.Advance(limit.Window)
			}
		},
		"a reset forgets the waits": func(p *lockoutPlay) {
			p.fill(time.Second)
			p.reset(p.item(0, "k", 0))
			p.fill(time.Second)
		},
	} {
		t.Run(name, func(t *testing.T) {
			clock := NewClock(start())
			f(&lockoutPlay{one(t, s.new(t, clock.Now), limit), clock})
		})
	}
	t.Run("the longest waits", func(t *testing.T) {
		l := limit
		l.Lockout = core.Lockout{First: time.Second, Factor: 1000, Max: s.longestWindow(), Decay: time.Hour}
		clock := NewClock(start())
		p := &lockoutPlay{one(t, s.new(t, clock.Now), l), clock}
		for _, want := range []time.Duration{time.Second, 1000 * time.Second, min(1_000_000*time.Second, s.longestWindow()), s.longestWindow(), s.longestWindow()} {
			p.fill(want)
			p.sitOut()
		}
	})
}

type lockoutPlay struct {
	*counter
	clock *Clock
}

// fill uses the quota up and checks the length of the wait, if one is given.
func (p *lockoutPlay) fill(want time.Duration) {
	p.t.Helper()
	for range 2 {
		if b := p.take("k", 1); !b.Allowed {
			p.t.Fatalf("denied, with %v to wait", b.Items[0].Results[0].RetryAfter)
		}
	}
	if want > 0 {
		p.locked(want)
	}
}

// locked checks the length of the wait that is left.
func (p *lockoutPlay) locked(want time.Duration) {
	p.t.Helper()
	b := p.take("k", 1)
	if r := b.Items[0].Results[0]; b.Allowed || r.RetryAfter != want || r.ResetAfter != want || r.Remaining != 0 {
		p.t.Fatalf("allowed %v, %+v, want %v to wait", b.Allowed, r, want)
	}
}

// sitOut waits until the wait is over, and not a microsecond longer.
func (p *lockoutPlay) sitOut() {
	p.t.Helper()
	p.clock.Advance(p.peek("k", 1).Items[0].Results[0].RetryAfter - time.Microsecond)
	p.locked(time.Microsecond)
	p.clock.Advance(time.Microsecond)
}
