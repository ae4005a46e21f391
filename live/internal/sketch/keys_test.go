package sketch

import (
	"fmt"
	"strings"
	"testing"
)

// Keys of other groups, and keys with other extras, are other keys.
func TestKeysThatDifferInOnePartOnly(t *testing.T) {
	s := New(800)
	keys := []Key{{}, {Group: 1}, {Group: 2}, {Key: "a"}, {Group: 1, Key: "a"}, {Key: "a", Extra: "b"}, {Group: 1, Key: "a", Extra: "b"}, {Key: "b", Extra: "a"}, {Extra: "a"}, {Key: "ab"}, {Key: "a", Extra: "c"}}
	for i, k := range keys {
		s.Add(k, uint64(i)+1, 0) //nolint:gosec // small
	}
	counts := map[Key]uint64{}
	for _, c := range s.Top(100) {
		counts[c.Key] = c.Count
		if c.Cut {
			t.Errorf("%+v is cut", c.Key)
		}
	}
	for i, k := range keys {
		if counts[k] != uint64(i)+1 { //nolint:gosec // small
			t.Errorf("%+v was counted %d times, want %d", k, counts[k], i+1)
		}
	}
}

// A key is cut if it and its extra are longer than what is kept of them.
func TestTheLongestKeyThatIsNotCut(t *testing.T) {
	for _, c := range []struct {
		key, extra int
		cut        bool
	}{
		{0, 0, false}, {longest, 0, false}, {longest + 1, 0, true}, {longest, 1, true}, {longest - 1, 1, false}, {longest - 1, 2, true}, {0, longest, false}, {0, longest + 1, true},
	} {
		s := New(8)
		s.Add(Key{Key: strings.Repeat("k", c.key), Extra: strings.Repeat("x", c.extra)}, 1, 0)
		top := s.Top(1)
		key, extra := min(c.key, longest), min(c.extra, longest-min(c.key, longest))
		if len(top) != 1 || top[0].Cut != c.cut || len(top[0].Key.Key) != key || len(top[0].Extra) != extra {
			t.Errorf("%d bytes and %d of the extra: %+v, want that it is cut: %v", c.key, c.extra, top, c.cut)
		}
	}
}

// The room for keys is rounded up to a multiple of eight.
func TestTheRoomOfASketch(t *testing.T) {
	for n, want := range map[int]int{0: 8, 1: 8, 8: 8, 9: 16, 16: 16, 17: 24} {
		s := New(n)
		for i := range 2000 {
			s.Add(Key{Key: fmt.Sprint(i)}, 1, 0)
		}
		if got := len(s.Top(1000)); got != want {
			t.Errorf("New(%d) has room for %d keys, want %d", n, got, want)
		}
	}
}
