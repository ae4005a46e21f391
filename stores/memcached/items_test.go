package memcachedstore

import (
	"bytes"
	"testing"
)

// What is sealed opens as it was; what has been cut, padded or changed does
// not.
func FuzzOpen(f *testing.F) {
	f.Add([]byte("state"), []byte("5 "), 2)
	f.Add([]byte{}, []byte{}, 0)
	f.Fuzz(func(t *testing.T, value, foreign []byte, at int) {
		_ = open(foreign)
		sealed := seal(bytes.Clone(value))
		if got := open(sealed); !bytes.Equal(got, value) {
			t.Errorf("%q opens as %q", value, got)
		}
		if open(sealed[:len(sealed)-1]) != nil && len(value) > 0 {
			t.Errorf("%q opens when cut", value)
		}
		changed := bytes.Clone(sealed)
		changed[uint(at)%uint(len(changed))] ^= 1
		if open(changed) != nil {
			t.Errorf("%q opens when changed", value)
		}
	})
}
