package storetest

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/floodgate-go/floodgate/core"
)

// model compares random sequences of operations with the model's.
func (s *suite) model(t *testing.T) {
	clock := NewClock(start())
	store := s.new(t, clock.Now)
	rapid.Check(t, func(r *rapid.T) {
		clock.Set(start()) // no key of an earlier sequence is used again
		p := &play{r: r, clock: clock, states: map[string][]*modelLimit{}}
		for i := range rapid.IntRange(1, 3).Draw(r, "rules") {
			p.rules = append(p.rules, core.StoreRule{Name: fmt.Sprintf("r%d", i), Limits: drawLimits(r, s.longestWindow())})
		}
		bound, err := store.Open(uniqueName(), p.rules)
		if err != nil {
			r.Fatalf("Open: %v", err)
		}
		p.counter = &counter{t, bound, p.rules, store.Guarantees().Ops}
		r.Repeat(map[string]func(*rapid.T){
			"take":    func(r *rapid.T) { p.r = r; p.take(false) },
			"again":   func(r *rapid.T) { p.r = r; p.take(false) },
			"peek":    func(r *rapid.T) { p.r = r; p.take(true) },
			"charge":  func(r *rapid.T) { p.r = r; p.charges() },
			"refund":  func(r *rapid.T) { p.r = r; p.refund() },
			"grant":   func(r *rapid.T) { p.r = r; p.grant() },
			"reset":   func(r *rapid.T) { p.r = r; p.forget() },
			"rebind":  func(r *rapid.T) { p.r = r; p.reconfigure() },
			"advance": func(r *rapid.T) { p.r = r; p.advance() },
		})
	})
}

// play is one random sequence.
type play struct {
	*counter
	r      *rapid.T
	clock  *Clock
	rules  []core.StoreRule
	states map[string][]*modelLimit
	taken  []*core.Batch
}

func drawLimits(r *rapid.T, longest time.Duration) []core.Limit {
	windows := []time.Duration{time.Millisecond, 7 * time.Millisecond, time.Second, time.Minute, longest}
	var limits []core.Limit
	for range rapid.IntRange(1, 3).Draw(r, "limits") {
		l := core.Limit{
			Quota:     rapid.Int64Range(0, 7).Draw(r, "quota"),
			Window:    rapid.SampledFrom(windows).Draw(r, "window"),
			Algorithm: rapid.SampledFrom(algorithms).Draw(r, "algorithm"),
		}
		switch l.Algorithm {
		case core.FixedWindow:
			if rapid.Bool().Draw(r, "lockout") {
				l.Lockout = core.Lockout{
					First:  max(core.MinWindow, l.Window/5).Truncate(time.Microsecond),
					Factor: rapid.Int64Range(1, 3).Draw(r, "factor"),
					Max:    l.Window,
					Decay:  l.Window,
				}
				break
			}
			l.Aligned = rapid.Bool().Draw(r, "aligned")
		case core.SlidingWindow:
			l.Aligned = rapid.Bool().Draw(r, "aligned")
		case core.TokenBucket:
			l.Burst = rapid.Int64Range(0, 9).Draw(r, "burst")
		case core.BucketedWindow:
			l.Precision = l.Window
			if l.Window > time.Millisecond {
				l.Precision = l.Window / time.Duration(rapid.SampledFrom([]int{1, 7}).Draw(r, "buckets"))
				if l.Precision%time.Microsecond != 0 || l.Window%l.Precision != 0 {
					l.Precision = l.Window / 4
				}
			}
		}
		if l.Validate() != nil {
			continue
		}
		if !slices.ContainsFunc(limits, func(o core.Limit) bool {
			return o.Algorithm == l.Algorithm && o.Window == l.Window && o.Precision == l.Precision && o.Aligned == l.Aligned &&
				(o.Lockout == core.Lockout{}) == (l.Lockout == core.Lockout{})
		}) {
			limits = append(limits, l)
		}
	}
	if len(limits) == 0 {
		limits = append(limits, core.PerMinute(3))
	}
	return limits
}

func (p *play) state(item core.Item) []*modelLimit {
	name := fmt.Sprint(item.Rule, " ", string(item.Key))
	if p.states[name] == nil {
		for _, l := range p.rules[item.Rule].Limits {
			p.states[name] = append(p.states[name], &modelLimit{Limit: l})
		}
	}
	return p.states[name]
}

func (p *play) now() int64 { return p.clock.Now().UnixMicro() }

func (p *play) drawItems() []core.Item {
	var items []core.Item
	cost := rapid.Int64Range(0, 9).Draw(p.r, "cost")
	own := rapid.Bool().Draw(p.r, "quotas of the limits")
	for range rapid.IntRange(1, 3).Draw(p.r, "items") {
		item := p.item(rapid.IntRange(0, len(p.rules)-1).Draw(p.r, "rule"), rapid.SampledFrom([]string{"", "a", "b"}).Draw(p.r, "key"), cost)
		if !slices.ContainsFunc(items, func(o core.Item) bool { return o.Rule == item.Rule && string(o.Key) == string(item.Key) }) {
			if !own {
				item.Quotas = p.drawQuotas(item.Rule)
			}
			items = append(items, item)
		}
	}
	return items
}

// drawQuotas draws a quota for each limit of a rule.
func (p *play) drawQuotas(rule int) []int64 {
	var quotas []int64
	for _, l := range p.rules[rule].Limits {
		some := rapid.SampledFrom([]int64{0, 1, 2, 5, 9, 20, l.Quota, core.Unlimited})
		quotas = append(quotas, some.Draw(p.r, "quota of the request"))
	}
	return quotas
}

// quota returns the quota of an item for a limit.
func (p *play) quota(item core.Item, limit int) int64 {
	if item.Quotas == nil {
		return p.rules[item.Rule].Limits[limit].Quota
	}
	return item.Quotas[limit]
}

func (p *play) take(peek bool) {
	b, op := &core.Batch{Items: p.drawItems()}, core.OpTake
	if peek {
		op = core.OpPeek
	}
	if err := Do(context.Background(), p.bound, op, b); err != nil {
		p.r.Fatalf("%v: %v", op, err)
	}
	allowed := true
	for _, item := range b.Items {
		for j := range p.state(item) {
			allowed = allowed && p.admits(item, j)
		}
	}
	p.compare(b, allowed, allowed && !peek, false)
}

// admits reports whether a limit admits an item.
func (p *play) admits(item core.Item, limit int) bool {
	quota := p.quota(item, limit)
	l, done := p.state(item)[limit].under(quota)
	defer done()
	return quota == core.Unlimited || l.admits(p.now(), item.Cost)
}

func (p *play) charges() {
	b := &core.Batch{Items: p.drawItems()}
	if err := Do(context.Background(), p.bound, core.OpCharge, b); err != nil {
		p.r.Fatalf("Charge: %v", err)
	}
	p.compare(b, true, true, true)
}

// compare compares the results of a batch with the model's. charged means that
// the hits were charged, always that no limit was asked.
func (p *play) compare(b *core.Batch, allowed, charged, always bool) {
	if b.Allowed != allowed {
		p.r.Fatalf("Allowed is %v, model says %v: %s", b.Allowed, allowed, p.describe(b))
	}
	now := p.now()
	known := charged // the model knows what a refund of it gives back
	for _, item := range b.Items {
		if item.At != now {
			p.r.Fatalf("At is %d, the clock says %d", item.At, now)
		}
		for j := range p.state(item) {
			known = known && !p.state(item)[j].locked(now)
			want := p.result(item, j, charged, always)
			if item.Results[j] != want {
				p.r.Fatalf("rule %d, key %q, limit %v, cost %d, quotas %d: result %+v, model says %+v", item.Rule, item.Key, p.rules[item.Rule].Limits[j], item.Cost, item.Quotas, item.Results[j], want)
			}
		}
	}
	if known {
		p.taken = append(p.taken, b)
	}
}

// result charges one limit of an item, if it is charged, and returns its result.
func (p *play) result(item core.Item, limit int, charged, always bool) core.Result {
	quota, now := p.quota(item, limit), p.now()
	l, done := p.state(item)[limit].under(quota)
	defer done()
	admits, wait := true, time.Duration(0)
	if !always && quota != core.Unlimited {
		admits, wait = l.admits(now, item.Cost), l.wait(now, item.Cost)
	}
	if charged {
		l.charge(now, item.Cost)
	}
	return core.Result{Allowed: admits, Remaining: l.remaining(now), ResetAfter: l.reset(now), MoreAfter: l.more(now), RetryAfter: wait}
}

func (p *play) describe(b *core.Batch) string {
	text := ""
	for _, item := range b.Items {
		text += fmt.Sprintf("rule %d (%v), key %q, cost %d, quotas %d: %+v; ", item.Rule, p.rules[item.Rule].Limits, item.Key, item.Cost, item.Quotas, item.Results)
	}
	return text
}

// refund gives back some of the hits of a batch, or all that are left of it.
func (p *play) refund() {
	if len(p.taken) == 0 {
		return
	}
	i := rapid.IntRange(0, len(p.taken)-1).Draw(p.r, "which")
	whole := p.taken[i]
	cost := whole.Items[0].Cost
	some := *whole
	some.Items = slices.Clone(whole.Items)
	back := rapid.Int64Range(0, cost).Draw(p.r, "back")
	for j := range some.Items {
		some.Items[j].Cost = back
		whole.Items[j].Cost = cost - back
	}
	if back == cost {
		p.taken = slices.Delete(p.taken, i, i+1)
	}
	if err := Do(context.Background(), p.bound, core.OpRefund, &some); err != nil {
		p.r.Fatalf("Refund: %v", err)
	}
	for _, item := range some.Items {
		for j := range p.state(item) {
			l, done := p.state(item)[j].under(p.quota(item, j))
			l.refund(p.now(), item.At, item.Results[j].ResetAfter, item.Cost)
			done()
		}
	}
}

// forget resets a key; hits taken of it before must not be refunded after that.
func (p *play) forget() {
	items := p.drawItems()[:1]
	if err := Do(context.Background(), p.bound, core.OpReset, &core.Batch{Items: items}); err != nil {
		p.r.Fatalf("Reset: %v", err)
	}
	delete(p.states, fmt.Sprint(items[0].Rule, " ", string(items[0].Key)))
	p.taken = nil
}

func (p *play) advance() {
	l := p.rules[rapid.IntRange(0, len(p.rules)-1).Draw(p.r, "rule")].Limits[0]
	steps := []time.Duration{0, time.Microsecond, l.Window - time.Microsecond, l.Window, l.Window + time.Microsecond, 2 * l.Window, l.Window / 3}
	if l.Lockout != (core.Lockout{}) {
		steps = append(steps, l.Lockout.First, l.Lockout.First-time.Microsecond, l.Lockout.First*2, l.Lockout.Decay*2)
	}
	if l.Quota > 0 {
		steps = append(steps, l.Window/time.Duration(l.Quota))
	}
	p.clock.Advance(rapid.SampledFrom(steps).Draw(p.r, "step"))
}
