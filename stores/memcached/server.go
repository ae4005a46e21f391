package memcachedstore

import "github.com/floodgate-go/floodgate/core"

// ServerOf returns the address of the server that has the counters of a key of
// the rule with this index: package resilient gives each server a circuit
// breaker.
func (b timelyBound) ServerOf(rule int, key []byte) string {
	if rule < 0 || rule >= len(b.rules) {
		return ""
	}
	addr, err := b.selector.PickServer(core.StoredKey(b.limiter, b.rules[rule].Name, key))
	if err != nil {
		return ""
	}
	return addr.String()
}
