package storetest

var lastLease uint64

// nextLease returns a lease that no other take has. The bytes of every second one have a
// meaning in patterns, such as those of Lua.
func nextLease() (lease uint64) {
	if lastLease++; lastLease%2 == 0 {
		return lastLease * 0x9E3779B97F4A7C15
	}
	const magic = "%.[(*-^$"
	for n, i := lastLease, 0; i < 8; i++ {
		lease, n = lease<<8|uint64(magic[n%8]), n/8
	}
	return lease
}
