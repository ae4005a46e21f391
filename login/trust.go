package login

import (
	"context"
	"slices"
	"sync"

	"github.com/floodgate-go/floodgate/core"
)

// trust is an account's generation, as read from the store.
type trust struct {
	asked      bool // the other fields are set
	generation int64
	// sure is false if the store failed or answered without the shared counters, or if
	// the counter of Forgets is full. No client is trusted then.
	sure bool
	// down is true if the shared store does not answer and the guard counts in this process.
	down bool
	err  error
}

// holds reports whether a device cookie of the generation given is still valid. While the
// shared store does not answer, each cookie that has not expired is valid: otherwise an
// attacker could lock out the owner meanwhile. A Forget has no effect then. The failures
// of the cookie are counted in this process.
func (t trust) holds(given int64) bool {
	return t.down || t.sure && (t.generation == 0 || t.generation == given)
}

// trustIn reads the account's generation from the store.
func (m *memory) trustIn(ctx context.Context, account string) trust {
	d, err := m.trust.Peek(ctx, 0, core.Hit{Rule: ruleForgotten, Key: account})
	t := trust{asked: true, err: err}
	if err == nil {
		t.down = d.Degraded
		t.sure = !d.Degraded && d.Remaining > 0
		t.generation = d.Limit().Quota - d.Remaining
	}
	return t
}

// trustOf returns the account's generation when the attempt began. It asks the store
// once for each attempt. If the attempt succeeds, its client is trusted in this
// generation. A Forget while the handler runs therefore ends that trust too.
func (m *memory) trustOf(a *attempt) trust {
	if !a.trust.asked {
		a.trust = m.trustIn(a.Context(), a.account)
	}
	return a.trust
}

// judging holds the attempts whose handlers are running in this process. Its methods
// may be called concurrently.
type judging struct {
	mu       sync.Mutex
	last     uint64
	attempts map[string][]judged // by account, in the order in which they began
}

// judged is an attempt whose handler is running.
type judged struct {
	number uint64
	trust  trust
}

// begin adds an attempt whose handler will run.
func (j *judging) begin(a *attempt, t trust) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.attempts == nil {
		j.attempts = map[string][]judged{}
	}
	j.last++
	a.judged = j.last
	j.attempts[a.account] = append(j.attempts[a.account], judged{a.judged, t})
}

// end removes an attempt whose handler has ended.
func (j *judging) end(a *attempt) {
	if a.judged == 0 {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	left := slices.DeleteFunc(j.attempts[a.account], func(other judged) bool { return other.number == a.judged })
	if len(left) == 0 {
		delete(j.attempts, a.account)
		return
	}
	j.attempts[a.account] = left
}

// oldest returns the trust of the oldest attempt on an account whose handler is
// running. DeviceCookie does not know which attempt it is called for. The generation of
// the oldest attempt is the safe one: every later Forget ends it.
func (j *judging) oldest(account string) (t trust, found bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if all := j.attempts[account]; len(all) > 0 {
		return all[0].trust, true
	}
	return trust{}, false
}
