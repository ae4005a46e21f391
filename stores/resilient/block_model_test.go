package resilient_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/stores/resilient"
)

// blockStep is one of a history: an outage begins or ends, time passes, a key is blocked or
// reset, or a hit of it is taken.
type blockStep struct {
	kind blockStepKind
	key  string
	n    int
}

type blockStepKind int

const (
	blockToggle blockStepKind = iota
	blockPass
	blockBlock
	blockReset
	blockTake
)

var blockSteps = rapid.SliceOfN(rapid.Custom(func(r *rapid.T) blockStep {
	return blockStep{
		rapid.SampledFrom([]blockStepKind{blockToggle, blockPass, blockPass, blockBlock, blockReset, blockTake, blockTake}).Draw(r, "kind"),
		rapid.SampledFrom([]string{"a", "b"}).Draw(r, "key"), rapid.IntRange(0, 9).Draw(r, "n"),
	}
}), 30, 80)

// blockedKey is the model of a key.
type blockedKey struct {
	used  int64     // hits that were admitted since the last Reset
	until time.Time // when its block ends in this process
	// When it ends in the store: at least, and at most. A block of an outage does not end one that lasts
	// longer, and may replace one of which the store has just been told, or not yet.
	least, most time.Time
}

// blocked sets when a block ends in this process, and in the store if that knows it.
func (k *blockedKey) blocked(until time.Time, known bool) {
	if k.until = until; known {
		k.least, k.most = until, until
	} else if until.After(k.most) {
		k.most = until
	}
}

// In this process a block holds for its time and no longer, through outages. In the store it
// holds from one and a half times Retry after the store answers again. No hit is charged because
// of it.
func TestBlocksAgainstAModel(t *testing.T) {
	const quota = 20
	rapid.Check(t, func(r *rapid.T) {
		history, failures, divisible := blockSteps.Draw(r, "history"), rapid.IntRange(1, 3).Draw(r, "failures"), rapid.Bool().Draw(r, "divisible")
		wrong := ""
		synctest.Test(t, func(t *testing.T) {
			s := newSums(t, 1, divisible, resilient.Config{Failures: failures}, fixed(quota, year))
			self, down, since, keys := s.instances[0], false, time.Now().Add(-time.Hour), map[string]*blockedKey{"a": {}, "b": {}}
			check := func() string {
				if down || time.Since(since) < settled {
					return ""
				}
				for name, k := range keys {
					if k.until.After(k.least) {
						k.least = k.until
					}
					r, least, most := s.look(name), max(0, time.Until(k.least)), max(0, time.Until(k.most))
					free := r.Remaining == quota-k.used && (r.RetryAfter > 0) == (k.used == quota)
					if (r.RetryAfter < least || r.RetryAfter > most) && (least > 0 || !free) {
						return fmt.Sprintf("key %s: the store shows %+v after %d hits, and the block ends in %v to %v", name, r, k.used, least, most)
					}
				}
				return ""
			}
			for i, step := range history {
				if wrong = self.blockStep(s, step, keys[step.key], &down, &since, quota); wrong == "" {
					wrong = check()
				}
				if wrong != "" {
					wrong = fmt.Sprintf("step %d %+v: %s", i, step, wrong)
					return
				}
			}
			self.link.fail(nil)
			down, since = false, time.Now()
			for range 2 {
				time.Sleep(settled)
				if wrong = check(); wrong != "" {
					return
				}
				time.Sleep(time.Minute)
			}
		})
		if wrong != "" {
			r.Fatal(wrong)
		}
	})
}

// blockStep does a step, and returns what is wrong.
func (i *summed) blockStep(s *sums, step blockStep, k *blockedKey, down *bool, since *time.Time, quota int64) string {
	b, ctx := s.batch(step.key, 1, 0), context.Background()
	switch step.kind {
	case blockToggle:
		synctest.Wait()
		*down, *since = !*down, time.Now()
		if i.link.fail(nil); *down {
			i.link.fail(errRefused)
		}
	case blockPass:
		time.Sleep(time.Duration(step.n) * 500 * time.Millisecond)
	case blockBlock:
		d := time.Duration(step.n) * time.Second
		if d == 0 {
			if *down {
				return ""
			}
			time.Sleep(settled)
		}
		err := i.Bound.(core.Blocker).Block(ctx, b, d)
		k.blocked(time.Now().Add(d), err == nil)
		if told := !*down && time.Since(*since) >= settled; err != nil && !errors.Is(err, core.ErrDegraded) || told && err != nil || *down && err == nil {
			return fmt.Sprintf("the error is %v", err)
		}
	case blockReset:
		if *down {
			return ""
		}
		time.Sleep(settled)
		if err := i.Reset(ctx, b); err != nil {
			return err.Error()
		}
		*k = blockedKey{}
	case blockTake:
		err := i.Take(ctx, b)
		now := time.Now()
		blocked := now.Before(k.until) || !*down && time.Since(*since) >= settled && now.Before(k.least)
		want := !blocked && k.used < quota
		if unsure := !*down && !blocked && now.Before(k.most); err != nil || b.Allowed != want && !unsure {
			return fmt.Sprintf("allowed: %t, %v, want %t", b.Allowed, err, want)
		}
		if b.Allowed {
			k.used++
		} else if r := b.Items[0].Results[0]; *down && blocked && k.used < quota && r.RetryAfter != time.Until(k.until) {
			return fmt.Sprintf("%+v, and the block ends in %v", r, time.Until(k.until))
		}
	}
	return ""
}

// look returns how things stand for a key in the store.
func (s *sums) look(key string) core.Result {
	b := s.batch(key, 1, 0)
	b.Peek = true
	if err := s.server.Take(context.Background(), b); err != nil {
		s.t.Fatal(err)
	}
	return b.Items[0].Results[0]
}
