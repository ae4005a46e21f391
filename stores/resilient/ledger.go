package resilient

import (
	"slices"

	"github.com/floodgate-go/floodgate/core"
)

func newLedger(most int) *ledger {
	if most == 0 {
		most = core.DefaultMaxKeys
	}
	return &ledger{most: most, debts: map[owedKey]debt{}, due: map[string]dueKeys{}, paying: map[owedKey]*payment{}, giving: map[owedKey]int{}, asking: newAsking(), untold: untold{most: most}}
}

// add adds to a key's debt, and to the keys that are due at a server if due. It
// reports whether it has: a key that owes no hits takes no place of one that does.
// The ledger is locked.
func (l *ledger) add(k owedKey, d debt, server string, due bool, now int64) bool {
	was, found := l.debts[k]
	if found && was.until <= now {
		was = debt{due: was.due}
	}
	if !found && !l.makeRoom(now, d.hits()) {
		return false
	}
	d.sure, d.unsure = min(was.sure+d.sure, core.MaxQuota), min(was.unsure+d.unsure, core.MaxQuota)
	d.known = min(was.known+d.known, core.MaxQuota)
	d.until, d.due = max(was.until, d.until), was.due // and its plan: the last hits decide
	if due && d.due == nil && !k.hashed {
		if l.due[server] == nil {
			l.due[server] = dueKeys{}
		}
		d.due = l.due[server]
		d.due[k] = struct{}{}
	}
	l.debts[k] = d
	for end, was := d.until, l.until.Load(); end > was && !l.until.CompareAndSwap(was, end); was = l.until.Load() {
	}
	return true
}

// makeRoom looks at a few debts and removes those whose hits no longer count.
// If there are too many debts, it removes the smallest of these few, so that a
// flood of new keys does not evict a key that has used up its quota. It returns
// false if there is no room for a debt of so many hits. The ledger is locked.
func (l *ledger) makeRoom(now, hits int64) bool {
	least, smallest := int64(-1), owedKey{}
	seen := 0
	for k, d := range l.debts { // begins at random
		if d.until <= now {
			l.remove(k)
		} else if h := d.hits(); least < 0 || h < least {
			least, smallest = h, k
		}
		if seen++; seen == 8 {
			break
		}
	}
	if len(l.debts) < l.most {
		return true
	}
	if hits == 0 && least > 0 {
		return false
	}
	l.remove(smallest)
	return true
}

// remove removes a key's debt and returns it. The ledger is locked.
func (l *ledger) remove(k owedKey) debt {
	d := l.debts[k]
	delete(l.debts, k)
	delete(d.due, k)
	return d
}

// serve makes b the version of the rules by which the payer charges.
func (l *ledger) serve(b *bound) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bound = b
}

// served returns the version of the rules that serve was called with last.
func (l *ledger) served() *bound {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.bound
}

// servers returns the servers at which keys are due.
func (l *ledger) servers() (servers []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for server, keys := range l.due {
		if len(keys) > 0 {
			servers = append(servers, server)
		} else {
			delete(l.due, server)
		}
	}
	return servers
}

// inUse reports whether a key's hits are being charged or given back. The ledger is locked.
func (l *ledger) inUse(k owedKey) bool { return l.paying[k] != nil || l.giving[k] > 0 }

// pick claims a few of the keys that are due at a server, for the payer. It
// drops debts whose hits no longer count or whose rule is gone. more means that
// there may be others to pick.
func (l *ledger) pick(server string) (b *bound, claims []*claim, more bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now, looked := l.bound.now(), 0
	for k := range l.due[server] {
		if i := slices.Index(l.bound.owed.names, k.rule); i < 0 {
			l.remove(k)
			more = true
		} else if !l.inUse(k) {
			more = true
			if c := l.claimKey(k, []byte(k.key), i, now); c != nil {
				claims = append(claims, c)
			}
		}
		if looked++; looked == payLook || len(claims) == payKeys {
			break
		}
	}
	return l.bound, claims, more
}
