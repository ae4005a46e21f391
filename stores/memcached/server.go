package memcachedstore

// ServerOf returns the address of the server that has the counters of a key of
// the rule with this index: package resilient gives each server a circuit
// breaker.
func (b timelyBound) ServerOf(rule int, key []byte) string {
	addr, err := b.selector.PickServer(b.rules[rule].StoredKey(b.limiter, key))
	if err != nil {
		return ""
	}
	return addr.String()
}
