package resilient

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// payer charges to the store, in the background, the hits that were admitted in
// the process while the store did not answer, and tells it of blocks. It has one goroutine, which runs
// while there are such hits or blocks and until the Store is closed, and which has one
// operation under way at a time. If a circuit is open, it asks the store as any
// other request does: one at a time, after Config.Retry.
type payer struct {
	config *Config

	mu      sync.Mutex
	ledgers []*ledger
	closed  bool
	stop    context.CancelFunc // of the goroutine; nil: it does not run
	stopped chan struct{}
}

// How much the payer does at a time.
const (
	longestTick = 250 * time.Millisecond
	payKeys     = 32  // charged by one operation
	payLook     = 256 // looked at under the ledger's lock
)

func newPayer(c *Config) *payer { return &payer{config: c} }

func (p *payer) add(l *ledger) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ledgers = append(p.ledgers, l)
}

// wake starts the goroutine if it does not run. The caller has added to the keys
// that are due.
func (p *payer) wake() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.stop != nil {
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	p.stop, p.stopped = stop, make(chan struct{})
	go p.run(ctx, p.stopped)
}

// close stops the goroutine and waits for its end.
func (p *payer) close() {
	p.mu.Lock()
	stop, stopped := p.stop, p.stopped
	p.closed = true
	p.mu.Unlock()
	if stop != nil {
		stop()
		<-stopped
	}
}

func (p *payer) run(ctx context.Context, stopped chan<- struct{}) {
	defer close(stopped)
	// While a circuit is open, a tick costs nothing: see circuit.allow.
	tick := time.NewTicker(max(min(p.config.Retry/4, longestTick), time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		p.mu.Lock()
		ledgers := p.ledgers
		p.mu.Unlock()
		for _, l := range ledgers {
			for _, server := range l.servers() {
				p.pay(ctx, l, server)
			}
			l.served().tellDueBlocks(ctx)
		}
		if p.ended() {
			return
		}
	}
}

// ended reports whether nothing is due. The goroutine ends then, and wake starts
// another.
func (p *payer) ended() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range p.ledgers {
		if len(l.servers()) > 0 || !l.untold.none() && l.untold.due(l.served().now()) {
			return false
		}
	}
	p.stop()
	p.stop, p.stopped = nil, nil
	return true
}

// pay charges the keys that are due at a server until there are none, or the
// server does not answer.
func (p *payer) pay(ctx context.Context, l *ledger, server string) {
	for ctx.Err() == nil {
		b, claims, more := l.pick(server)
		if len(claims) > 0 {
			more = !unanswered(b.payDue(ctx, claims))
		}
		if !more {
			return
		}
	}
}

// errPanicked is wrapped by the error of a payment in which foreign code
// panicked: nothing else recovers in this goroutine.
var errPanicked = errors.New("panicked")

// unanswered reports whether an error of payDue means that the store did not
// answer: all other keys would fail too.
func unanswered(err error) bool { return trouble(err) && !errors.Is(err, errPanicked) }

// payDue charges the claimed keys and ends the claims. If the store does not
// answer, the keys stay due. If the charge of a key fails for another reason,
// the next request for the key charges it.
func (b *bound) payDue(ctx context.Context, claims []*claim) error {
	err := b.tryToPay(ctx, claims)
	if err == nil || unanswered(err) || len(claims) == 1 {
		for _, c := range claims {
			b.owed.paid(c, b.serverOf(c.index, c.name), err != nil, unanswered(err))
		}
		return err
	}
	// One of the keys makes the operation fail.
	var last error
	for i, c := range claims {
		if c.asked {
			c.sure, c.unsure = 0, c.hits()
		}
		if err := b.payDue(ctx, claims[i:i+1]); unanswered(err) {
			last = err
		}
	}
	return last
}

func (b *bound) tryToPay(ctx context.Context, claims []*claim) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("resilient: %w: %v", errPanicked, v)
			b.config.Log.Error("the hits of an outage could not be charged", slog.Any("error", err))
		}
	}()
	batch := core.Batch{}
	for _, c := range claims {
		batch.Items = append(batch.Items, core.Item{Rule: c.index, Key: c.name})
	}
	t, err := b.circuits.allow(b.where, &batch)
	if err != nil {
		return err
	}
	began, ended := time.Now(), false
	defer func() {
		if !ended {
			t.done(errPanicked, false)
		}
	}()
	for _, c := range claims {
		if err = b.count(ctx, c); err != nil {
			break
		}
	}
	if err == nil {
		err = b.pay(ctx, claims)
	}
	ended = true
	b.done(ctx, &t, err, began)
	return err
}
