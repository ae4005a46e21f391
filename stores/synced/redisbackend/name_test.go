package redisbackend

import (
	"testing"
	"time"
)

// Every name that is made is read as what it was made of; any other text is
// read without a panic.
func FuzzParseName(f *testing.F) {
	f.Add("ns", "fg1:api:ip:abc:s", int64(60_000_000), int64(1_764_000_000_000_000))
	f.Add("a.b", ":", int64(1), int64(-1))
	f.Fuzz(func(t *testing.T, namespace, key string, window, start int64) {
		length, at := time.Duration(window)*time.Microsecond, time.UnixMicro(start)
		_ = parseName(key)
		_ = parseName(prefix(namespace) + key)
		if !validForName(namespace) || window <= 0 || window > (1<<63-1)/1000 {
			return
		}
		c := parseName(counterName(namespace, key, length, at))
		if c.Key != key || c.Window != length || !c.Start.Equal(at) {
			t.Errorf("%q %q %d %d is read as %+v", namespace, key, window, start, c)
		}
	})
}

// validForName is what package synced accepts as a namespace.
func validForName(s string) bool {
	for _, r := range s {
		if r != '.' && r != '_' && r != '-' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') {
			return false
		}
	}
	return true
}
