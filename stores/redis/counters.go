package redisstore

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/meter"
)

// counters are the Counters of a Store.
type counters struct {
	store   *Store
	limiter string
	rules   []counterRule
}

type counterRule struct {
	name       string
	limits     any  // a string, as the script reads it, boxed once
	denies     bool // deny a key whose value cannot be read
	weight     int  // microseconds that the script probably needs for a key
	answer     int  // bytes of the reply for a key
	meters     []meter.Meter
	algorithms algorithms
	edges      *edges
}

func newCounters(s *Store, limiter string, rules []core.StoreRule) *counters {
	b := &counters{store: s, limiter: limiter}
	for _, r := range rules {
		rule := counterRule{
			name: r.Name, limits: encodeLimits(r.Limits, r.DenyUnreadable), denies: r.DenyUnreadable,
			weight: itemWeight, answer: replyTime, edges: edgesOf(r.Limits),
		}
		for _, l := range r.Limits {
			m := meter.New(meter.FromCore(l))
			rule.meters = append(rule.meters, m)
			rule.weight += weightOf(&m)
			rule.answer += answerSize(&m)
			rule.algorithms |= only(m.Algorithm)
		}
		b.rules = append(b.rules, rule)
	}
	return b
}

// Reopen implements [core.Counters]. A state names the limit that it is of, so
// that unchanged limits find their states again.
func (b *counters) Reopen(rules []core.StoreRule) (core.Counters, error) {
	return newCounters(b.store, b.limiter, rules), nil
}

// Do implements [core.Counters].
func (b *counters) Do(ctx context.Context, batch *core.Batch) error {
	switch batch.Op {
	case core.OpTake:
		return b.decide(ctx, verbTake, batch)
	case core.OpPeek:
		return b.decide(ctx, verbPeek, batch)
	case core.OpCharge:
		return b.decide(ctx, verbCharge, batch)
	case core.OpGrant:
		return b.decide(ctx, verbGrant, batch)
	case core.OpRefund:
		return b.each(ctx, verbRefund, batch)
	case core.OpReset:
		return b.each(ctx, verbReset, batch)
	case core.OpBlock:
		items := slices.Clone(batch.Items) // the script takes the time in place of the cost
		for i := range items {
			items[i].Cost, items[i].Quotas = batch.For.Microseconds(), nil
		}
		return b.each(ctx, verbBlock, &core.Batch{Items: items})
	case core.OpResetAll:
		return b.resetAll(ctx)
	default:
		return fmt.Errorf("redis: %v: %w", batch.Op, core.ErrUnsupported)
	}
}

// namedItems is the working memory of an operation.
type namedItems struct{ items []namedItem }

var itemsPool = sync.Pool{New: func() any { return new(namedItems) }}

func (b *counters) items(batch *core.Batch) *namedItems {
	n := itemsPool.Get().(*namedItems)
	for i := range batch.Items {
		it := &batch.Items[i]
		rule := &b.rules[it.Rule]
		n.items = append(n.items, namedItem{it, rule, core.StoreRule{Name: rule.name}.StoredKey(b.limiter, it.Key)})
	}
	return n
}

func (n *namedItems) free() {
	clear(n.items)
	n.items = n.items[:0]
	itemsPool.Put(n)
}

// decide runs a verb that has results.
func (b *counters) decide(ctx context.Context, verb byte, batch *core.Batch) error {
	n := b.items(batch)
	defer n.free()
	op := b.store.begin(ctx)
	groups := b.store.group(n.items)
	if len(groups) > 1 {
		allowed, err := b.store.takeApart(op, verb, groups)
		batch.Allowed = allowed
		return err
	}
	allowed, err := b.store.ask(op, verb, n.items)
	if err != nil && crossesSlots(err) {
		b.store.layout.Store(oneSlot)
		allowed, err = b.store.takeApart(op, verb, b.store.group(n.items))
	}
	batch.Allowed = allowed
	return err
}

// ask runs the script once for the items and fills in their results.
func (s *Store) ask(op operation, verb byte, items []namedItem) (bool, error) {
	if len(items) == 0 {
		return true, nil
	}
	r, err := s.do(op, verb, items)
	if err != nil {
		return false, err
	}
	s.reportReply(r, items)
	if err = r.fill(verb, items); err != nil {
		return false, err
	}
	return !r.denied, nil
}

// each runs a verb that has no results. On a cluster, a failure for some keys
// does not stop the others.
func (b *counters) each(ctx context.Context, verb byte, batch *core.Batch) error {
	n := b.items(batch)
	defer n.free()
	op := b.store.begin(ctx)
	var errs []error
	groups := b.store.group(n.items)
	for _, g := range groups {
		_, err := b.store.do(op, verb, g)
		if err != nil && len(groups) > 1 { // a second refund would give the others' hits back twice
			err = afterOthers(err)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// resetAll goes, as [Store.Scan] does, through all of the server's keys, in small steps,
// and needs the right to SCAN.
func (b *counters) resetAll(ctx context.Context) error {
	nodes, err := b.store.nodes(ctx)
	if err != nil {
		return err
	}
	for i := range b.rules {
		for _, node := range nodes {
			if err := b.store.scan(ctx, node, b.limiter, &b.rules[i], b.store.forget); err != nil {
				return err
			}
		}
	}
	return nil
}

// forget deletes the items.
func (s *Store) forget(ctx context.Context, items []namedItem) error {
	for _, group := range s.group(items) {
		if _, err := s.do(s.begin(ctx), verbReset, group); err != nil {
			return fmt.Errorf("redis: forgetting all keys: %w", err)
		}
	}
	return nil
}

// meterOf returns the meter of a limit with the quota of an item, and whether it has none.
func (r *counterRule) meterOf(it *core.Item, limit int) (m *meter.Meter, unlimited bool) {
	m = &r.meters[limit]
	if it.Quotas == nil || it.Quotas[limit] == m.Quota {
		return m, false
	}
	return m.For(it.Quotas[limit], new(meter.Meter)), it.Quotas[limit] == core.Unlimited
}

// textsOf returns the limits of an item as the script reads them, with the item's quotas, and
// how many microseconds the script probably needs for it. texts has the limits with their own
// quotas.
func (r *counterRule) textsOf(it *core.Item, texts any) (of any, weight int) {
	var b []byte
	le, weight := binary.LittleEndian, r.weight
	for i := range it.Quotas {
		own := &r.meters[i]
		m, unlimited := r.meterOf(it, i)
		if m == own && !unlimited {
			continue
		}
		if b == nil {
			b = []byte(texts.(string))
		}
		limit := b[textHead+i*textLimit:]
		le.PutUint32(limit[textQuota:], uint32(m.Quota))
		le.PutUint32(limit[textCapacity:], uint32(m.Capacity))
		if unlimited {
			limit[textUnlimited] = 1
		}
		weight += weightOf(m) - weightOf(own)
	}
	if b == nil {
		return texts, weight
	}
	return string(b), weight
}

// callWeight is how many microseconds of the script's time a call takes beside
// those for its items, and itemWeight an item beside those for its limits.
const callWeight, itemWeight = 1, 2

// weightOf returns how many microseconds of the script's time a limit takes, roughly, if much
// is stored. It keeps decisions that take long from being sent together with many others.
func weightOf(m *meter.Meter) int { return 1 + int(m.MostBytes()/64) }

// A server knows no time zones. The limits of a rule as the script reads them have, for
// each limit of a calendar, the edges of the window that the server's time is probably in. If
// the script needs another window, it changes nothing and replies with its time. The
// decision is then asked for again with the edges around that time.

// edges writes the edges of a rule's limits.
type edges struct {
	zones  []*time.Location // of each limit; nil: not of a calendar
	length []int64
	latest atomic.Pointer[edgedText]
}

// edgedText is a rule's limits with edges that are right for the times from from
// to before to.
type edgedText struct {
	text     any // a string, boxed once
	from, to int64
}

// edgesOf returns the edges of a rule's limits; nil if no limit is of a calendar.
func edgesOf(rule []core.Limit) *edges {
	e, found := new(edges), false
	for _, limit := range rule {
		l := meter.FromCore(limit)
		e.zones, e.length = append(e.zones, l.Zone), append(e.length, l.Window)
		found = found || l.Algorithm == meter.Calendar
	}
	if !found {
		return nil
	}
	return e
}

// textFor returns the limits of a rule for a call that carries a time. Without one, the
// server's clock probably shows the process's time and what it was ahead of that.
func (r *counterRule) textFor(s *Store, carried int64) any {
	if r.edges == nil {
		return r.limits
	}
	now := carried
	if now == 0 {
		now = time.Now().UnixMicro() + s.ahead.Load()
	}
	t := r.edges.latest.Load()
	if t == nil || now < t.from || now >= t.to {
		t = r.edges.write(r.limits.(string), now)
		r.edges.latest.Store(t)
	}
	return t.text
}

func (e *edges) write(limits string, now int64) *edgedText {
	b, le := []byte(limits), binary.LittleEndian
	t := &edgedText{from: -maxTime, to: maxTime}
	for i, zone := range e.zones {
		if zone == nil {
			continue
		}
		start, end := meter.CivilWindow(e.length[i], zone, time.UnixMicro(now).Unix())
		start, end = start*1_000_000, end*1_000_000
		numbers := b[textHead+i*textLimit+textNumbers:]
		le.PutUint64(numbers, uint64(start))
		le.PutUint64(numbers[8:], uint64(end))
		t.from, t.to = max(t.from, start), min(t.to, end)
	}
	t.text = string(b)
	return t
}

// mostEdges is how often a decision is asked for with other edges. Each time has
// those of the reply before, so that only a server whose clock jumps, or servers
// whose clocks differ by more than a window, need another.
const mostEdges = 4

// edgesPrefix begins the error of a decision that was not made for want of edges.
// The server's time in microseconds follows.
const edgesPrefix = "FLOODGATE edges "

// learns reports whether a decision was not made for want of the edges of the
// window that the server's time is in, and notes that time.
func (s *Store) learns(err error) bool {
	var reply redis.Error
	if !errors.As(err, &reply) {
		return false
	}
	text, found := strings.CutPrefix(reply.Error(), edgesPrefix)
	now, bad := strconv.ParseInt(text, 10, 64)
	if !found || bad != nil {
		return false
	}
	s.ahead.Store(now - time.Now().UnixMicro())
	return true
}
