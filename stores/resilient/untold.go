package resilient

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/stores/internal/intime"
)

// untold keeps the blocks of this process of which the store may not know, for as long as
// they last. The store is told of a block with the next request for the key (see
// bound.settle) or in the background (see payer), whichever comes first.
type untold struct {
	n    atomic.Int64 // nearly every request asks whether there are any
	most int          // blocks

	mu     sync.Mutex
	blocks map[owedKey]*untoldBlock
}

// untoldBlock is the block of a key. Another Block or a Reset of the key replaces it.
type untoldBlock struct {
	until   int64         // in microseconds, by the clock of this process
	failed  bool          // for a reason that another try in the background does not mend
	telling chan struct{} // closed when the attempt to tell the store has ended; nil: there is none
}

func (u *untold) none() bool { return u.n.Load() == 0 }

// add adds a block. Of more than most, it keeps those that end last.
func (u *untold) add(k owedKey, until, now int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.blocks == nil {
		u.blocks = map[owedKey]*untoldBlock{}
	}
	u.blocks[k] = &untoldBlock{until: until}
	if len(u.blocks) > u.most {
		first, end := k, until
		for k, b := range u.blocks {
			if b.until <= now {
				delete(u.blocks, k)
			} else if b.until < end {
				first, end = k, b.until
			}
		}
		if len(u.blocks) > u.most {
			delete(u.blocks, first)
		}
	}
	u.n.Store(int64(len(u.blocks)))
}

// drop drops the block of a key. It returns a channel that is closed when the store is no
// longer being told of it, nil if it is not.
func (u *untold) drop(k owedKey) (telling <-chan struct{}) {
	u.mu.Lock()
	defer u.mu.Unlock()
	b := u.blocks[k]
	if b == nil {
		return nil
	}
	delete(u.blocks, k)
	u.n.Store(int64(len(u.blocks)))
	return b.telling
}

// dropAll is drop for all keys.
func (u *untold) dropAll() (telling []<-chan struct{}) {
	for _, k := range u.keys() {
		if t := u.drop(k); t != nil {
			telling = append(telling, t)
		}
	}
	return telling
}

// keys returns the blocked keys.
func (u *untold) keys() (keys []owedKey) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for k := range u.blocks {
		keys = append(keys, k)
	}
	return keys
}

// has reports whether there is a block of the key.
func (u *untold) has(k owedKey, now int64) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	b := u.blocks[k]
	return b != nil && b.until > now
}

// due reports whether the store is to be told of a block in the background.
func (u *untold) due(now int64) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	due := false
	for k, b := range u.blocks {
		if b.until <= now {
			delete(u.blocks, k)
		} else {
			due = due || !k.hashed && !b.failed
		}
	}
	u.n.Store(int64(len(u.blocks)))
	return due
}

// claim gives the block of a key to one caller, which tells the store of it and then calls
// told. claim returns nil if there is no block, or if another caller has claimed it.
// background means that a block that has failed is left to the next request for the key.
func (u *untold) claim(k owedKey, now int64, background bool) *untoldBlock {
	u.mu.Lock()
	defer u.mu.Unlock()
	b := u.blocks[k]
	if b == nil || b.until <= now || b.telling != nil || background && b.failed {
		return nil
	}
	b.telling = make(chan struct{})
	return b
}

// told ends a claim. done means that the store knows the block. failed means that the
// next request for the key tells it.
func (u *untold) told(k owedKey, b *untoldBlock, done, failed bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	close(b.telling)
	b.telling, b.failed = nil, failed
	if done && u.blocks[k] == b {
		delete(u.blocks, k)
		u.n.Store(int64(len(u.blocks)))
	}
}

// blockFor returns the operation that blocks keys for a time.
func blockFor(d time.Duration) intime.Op {
	return func(inner core.Bound, ctx context.Context, batch *core.Batch) error {
		return inner.(core.Blocker).Block(ctx, batch, d)
	}
}

// forgetBlocks drops the blocks of a batch's keys. It waits while the store is being told
// of one: the store must not hear of it later than of what the caller does.
func (b *bound) forgetBlocks(ctx context.Context, batch *core.Batch) {
	if b.owed.untold.none() {
		return
	}
	for i := range batch.Items {
		if t := b.owed.untold.drop(b.owed.key(&batch.Items[i])); t != nil {
			await(ctx, []<-chan struct{}{t})
		}
	}
}

// tellBlocks tells the store of the blocks of a batch's keys that it may not know.
func (b *bound) tellBlocks(ctx context.Context, batch *core.Batch) error {
	if b.owed.untold.none() {
		return nil
	}
	for i := range batch.Items {
		if err := b.tellBlock(ctx, &batch.Items[i]); err != nil {
			return err
		}
	}
	return nil
}

func (b *bound) tellBlock(ctx context.Context, it *core.Item) error {
	return b.tellOf(b.owed.key(it), it, false, func(batch *core.Batch, op intime.Op) error { return b.call(ctx, b.inner, batch, op) })
}

// tellOf tells the store of the block of a key by asking it. It does nothing if there is no
// block, or if another caller is telling the store of it.
func (b *bound) tellOf(k owedKey, it *core.Item, background bool, ask func(*core.Batch, intime.Op) error) (err error) {
	u, now := &b.owed.untold, b.now()
	block := u.claim(k, now, background)
	if block == nil {
		return nil
	}
	ended := false
	defer func() { // also if the store panics
		u.told(k, block, ended && err == nil, !ended || err != nil && !unanswered(err))
	}()
	look := core.Item{Rule: it.Rule, Key: it.Key, Cost: 1, Quotas: b.gauges.rules[it.Rule].quotas, Results: make([]core.Result, b.limits(it.Rule))}
	err = ask(&core.Batch{Peek: true, Items: []core.Item{look}}, blockForAtLeast(time.Duration(block.until-now)*time.Microsecond))
	ended = true
	return err
}

// blockForAtLeast returns the operation that blocks the key of a look for a time, unless it is
// blocked for longer: another process may have done that in between. The quotas of the look are so
// high that hardly anything else denies it.
func blockForAtLeast(d time.Duration) intime.Op {
	return func(inner core.Bound, ctx context.Context, look *core.Batch) error {
		if err := inner.Take(ctx, look); err != nil {
			return err
		}
		for _, r := range look.Items[0].Results {
			if r.RetryAfter >= d {
				return nil
			}
		}
		return blockFor(d)(inner, ctx, look)
	}
}

// tellDueBlocks tells the store in the background of the blocks that it may not know. Of a
// server that does not answer, it tries one.
func (b *bound) tellDueBlocks(ctx context.Context) {
	u := &b.owed.untold
	if u.none() {
		return
	}
	silent := map[string]bool{}
	for _, k := range u.keys() {
		rule := slices.Index(b.owed.names, k.rule)
		switch {
		case ctx.Err() != nil:
			return
		case rule < 0: // it is gone
			u.drop(k)
		case !k.hashed:
			b.tellDueBlock(ctx, k, &core.Item{Rule: rule, Key: []byte(k.key)}, silent)
		}
	}
}

func (b *bound) tellDueBlock(ctx context.Context, k owedKey, it *core.Item, silent map[string]bool) {
	defer func() {
		if v := recover(); v != nil { // nothing else recovers in this goroutine
			b.config.Log.Error("the store could not be told of a block", slog.Any("error", fmt.Errorf("resilient: %w: %v", errPanicked, v)))
		}
	}()
	if server := b.serverOf(it.Rule, it.Key); !silent[server] {
		err := b.tellOf(k, it, true, func(batch *core.Batch, op intime.Op) error { return b.ask(ctx, batch, op) })
		silent[server] = unanswered(err)
	}
}
