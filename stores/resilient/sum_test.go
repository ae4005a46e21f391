package resilient_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/stores/resilient"
	"github.com/floodgate-go/floodgate/stores/swapstore"
)

// move is one of a history of several instances: the link of one breaks or is mended,
// time passes, or an instance takes, charges or refunds hits of a key, or blocks it.
type move struct {
	kind     moveKind
	instance int
	key      string
	n        int64
	quotas   int // 0: the limits' own
}

type moveKind int

const (
	moveLink moveKind = iota
	movePass
	moveTake
	moveCharge
	moveRefund
	moveGrant
	moveBlock
)

var requestQuotas = []int64{0, 3, 20, 1000, core.Unlimited}

var moves = rapid.SliceOfN(rapid.Custom(func(r *rapid.T) move {
	return move{
		kind:     rapid.SampledFrom([]moveKind{moveLink, movePass, moveTake, moveTake, moveCharge, moveRefund, moveGrant, moveBlock}).Draw(r, "kind"),
		instance: rapid.IntRange(0, 2).Draw(r, "instance"),
		key:      rapid.SampledFrom([]string{"a", "b"}).Draw(r, "key"),
		n:        rapid.Int64Range(1, 9).Draw(r, "n"),
		quotas:   rapid.IntRange(0, len(requestQuotas)-1).Draw(r, "quotas"),
	}
}), 20, 60)

// sums is a history under way.
type sums struct {
	t         *testing.T
	rule      core.StoreRule
	server    core.Bound
	instances []*summed
	want      map[string]int64 // by key: what was admitted and charged, less what was refunded
}

// summed is an instance.
type summed struct {
	core.Bound
	link  *flaky
	down  bool
	since int // how often its link has broken or been mended
	taken []takenHits
}

type takenHits struct {
	*core.Batch
	since int
}

func newSums(t *testing.T, n int, divisible bool, c resilient.Config, limits ...core.Limit) *sums {
	var inner core.Store = core.Must(core.NewMemory(core.MemoryConfig{}))
	if divisible {
		inner = core.Must(swapstore.New(&values{all: map[string]swapstore.Value{}}, swapstore.Config{}))
	}
	s := &sums{t: t, rule: core.StoreRule{Name: "r", Limits: limits}, want: map[string]int64{}}
	server := &shared{Store: inner}
	for range n {
		link := &flaky{Store: server, end: make(chan struct{})}
		c.Failures = cmp.Or(c.Failures, 1)
		b := core.Must(newStore(t, &blocking{flaky: link}, c).Bind("l", []core.StoreRule{s.rule}))
		s.instances = append(s.instances, &summed{Bound: b, link: link})
	}
	s.server = server.bound
	return s
}

func (s *sums) batch(key string, cost, quota int64) *core.Batch {
	it := core.Item{Key: []byte(key), Cost: cost, Results: make([]core.Result, len(s.rule.Limits))}
	if quota != 0 {
		it.Quotas = slices.Repeat([]int64{quota}, len(s.rule.Limits))
	}
	return &core.Batch{Items: []core.Item{it}}
}

func (s *sums) do(m move) error {
	i := s.instances[m.instance%len(s.instances)]
	b := s.batch(m.key, m.n, requestQuotas[m.quotas])
	switch m.kind {
	case moveLink:
		synctest.Wait() // no operation is half done
		i.down = !i.down
		i.since++
		if i.link.fail(nil); i.down {
			i.link.fail(errRefused)
		}
	case movePass:
		time.Sleep(time.Duration(m.n) * 250 * time.Millisecond)
	case moveTake:
		if err := i.Take(context.Background(), b); err != nil || !b.Allowed {
			return err
		}
		s.want[m.key] += m.n
		i.taken = append(i.taken, takenHits{b, i.since})
	case moveCharge:
		if err := i.Charge(context.Background(), b); err != nil {
			return err
		}
		s.want[m.key] += m.n
		i.taken = append(i.taken, takenHits{b, i.since})
	case moveRefund:
		return s.refund(i, m.n)
	case moveGrant:
		return s.grant(i, b)
	case moveBlock: // it charges nothing, wherever it holds
		if err := i.Bound.(core.Blocker).Block(context.Background(), b, time.Duration(m.n)*500*time.Millisecond); err != nil && !errors.Is(err, core.ErrDegraded) {
			return err
		}
	}
	return nil
}

// grant grants hits of a key. Other instances do not hear of it: what they owe the store
// later may be some of these hits. So a history of several instances has no grants.
func (s *sums) grant(i *summed, b *core.Batch) error {
	if len(s.instances) > 1 {
		return nil
	}
	it := &b.Items[0]
	if i.Bound.(core.Granter).Grant(context.Background(), b) == nil { // else in an outage, or its circuit is still open
		s.want[string(it.Key)] -= min(it.Cost, s.want[string(it.Key)])
		i.taken = slices.DeleteFunc(i.taken, func(h takenHits) bool { return string(h.Items[0].Key) == string(it.Key) })
	}
	return nil
}

// refund gives back a part of the last hits. The store is not told of hits that it did
// not admit and has been charged with since.
func (s *sums) refund(i *summed, n int64) error {
	if len(i.taken) == 0 {
		return nil
	}
	last := i.taken[len(i.taken)-1]
	it := &last.Items[0]
	if last.Degraded && (!i.down || last.since != i.since) || !last.Degraded && i.down {
		return nil
	}
	n = min(n, it.Cost)
	some := *last.Batch
	some.Items = []core.Item{*it}
	some.Items[0].Cost = n
	it.Cost -= n
	if it.Cost == 0 {
		i.taken = i.taken[:len(i.taken)-1]
	}
	if i.Refund(context.Background(), &some) == nil { // else its circuit is still open: the store keeps the hits
		s.want[string(it.Key)] -= n
	}
	return nil
}

// stored returns how many hits of a key the store counts in each limit.
func (s *sums) stored(key string) (used []int64) {
	b := s.batch(key, 0, core.MaxQuota)
	b.Peek = true
	if err := s.server.Take(context.Background(), b); err != nil {
		s.t.Fatal(err)
	}
	for _, r := range b.Items[0].Results {
		used = append(used, core.MaxQuota-r.Remaining)
	}
	return used
}

// wrong returns what is wrong when all links work and all hits have been charged.
func (s *sums) wrong() string {
	synctest.Wait()
	for _, i := range s.instances {
		i.link.fail(nil)
	}
	time.Sleep(5 * time.Second)
	for key, want := range s.want {
		for j, got := range s.stored(key) {
			if got != want {
				return fmt.Sprintf("key %s, limit %v: the store counts %d hits, and %d were admitted and charged", key, s.rule.Limits[j], got, want)
			}
		}
	}
	return ""
}

// In the end the store counts what the instances have admitted and charged, to the
// hit, whatever outages there were, with quotas of requests too, and if several
// instances were cut off. No reply is lost.
func TestTheStoreCountsWhatWasAdmittedAndCharged(t *testing.T) {
	const days = 24 * time.Hour
	rapid.Check(t, func(r *rapid.T) {
		history := moves.Draw(r, "history")
		n, divided, divisible := rapid.IntRange(1, 3).Draw(r, "instances"), rapid.Bool().Draw(r, "divided"), rapid.Bool().Draw(r, "divisible")
		limits := []core.Limit{fixed(6, 300*days)}
		if rapid.Bool().Draw(r, "two limits") {
			limits = append(limits, core.Limit{Quota: 10, Window: 200 * days})
		}
		wrong := ""
		synctest.Test(t, func(t *testing.T) {
			c := resilient.Config{}
			if divided {
				c.Instances = n
			}
			s := newSums(t, n, divisible, c, limits...)
			for i, m := range history {
				if err := s.do(m); err != nil {
					wrong = fmt.Sprintf("move %d: %v", i, err)
					return
				}
			}
			wrong = s.wrong()
		})
		if wrong != "" {
			r.Fatal(wrong)
		}
	})
}
