package storetest

import "sync/atomic"

var lastLease atomic.Uint64 // several stores may be tested at the same time

// nextLease returns a lease that no other take has. The bytes of every second one have a
// meaning in patterns, such as those of Lua.
func nextLease() (lease uint64) {
	n := lastLease.Add(1)
	if n%2 == 0 {
		return n * 0x9E3779B97F4A7C15
	}
	const magic = "%.[(*-^$"
	for range 8 {
		lease, n = lease<<8|uint64(magic[n%8]), n/8
	}
	return lease
}
