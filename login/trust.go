package login

import (
	"context"
	"slices"
	"sync"

	"github.com/floodgate-go/floodgate/core"
)

// trust is what the store says about the trust in an account's clients.
type trust struct {
	asked      bool // the store has answered, or failed
	generation int64
	// sure is false if the store answered without the shared counters, or the
	// counter of Forgets is full. Nobody is trusted then.
	sure bool
	err  error
}

// holds reports whether trust that was given in another generation still holds.
// While the store does not answer, it does not: this process may not have heard
// of a Forget.
func (t trust) holds(given int64) bool {
	return t.err == nil && t.sure && (t.generation == 0 || t.generation == given)
}

// trustIn asks the store.
func (m *memory) trustIn(ctx context.Context, account string) trust {
	d, err := m.trust.Peek(ctx, 0, core.Hit{Rule: ruleForgotten, Key: account})
	t := trust{asked: true, err: err}
	if err == nil {
		t.sure = !d.Degraded && d.Remaining > 0
		t.generation = d.Limit.Quota - d.Remaining
	}
	return t
}

// trustOf asks the store once for each attempt, before the handler judges it. A
// client that is trusted because of the attempt is trusted in this generation: a
// Forget that comes while the handler judges ends that trust too.
func (m *memory) trustOf(a *attempt) trust {
	if !a.trust.asked {
		a.trust = m.trustIn(a.Context(), a.account)
	}
	return a.trust
}

// judging holds the attempts that the handler judges in this process. Its
// methods may be called concurrently.
type judging struct {
	mu       sync.Mutex
	last     uint64
	attempts map[string][]judged // of each account, in the order in which they began
}

// judged is an attempt without its request.
type judged struct {
	number uint64
	trust  trust
}

// begin adds an attempt that goes to the handler.
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

// end removes an attempt that the handler has judged.
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

// oldest returns the trust of the oldest attempt on an account that the handler
// judges. The caller does not say which attempt it means: the oldest one is never
// trusted for too long.
func (j *judging) oldest(account string) (t trust, found bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if all := j.attempts[account]; len(all) > 0 {
		return all[0].trust, true
	}
	return trust{}, false
}
