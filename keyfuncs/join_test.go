package keyfuncs_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

// FuzzJoin tests that different tuples have different keys, and that JoinKeys makes the same
// keys, and SplitKeys takes them apart.
func FuzzJoin(f *testing.F) {
	f.Add("a", "b-c", "a-b", "c")
	f.Add("2001:db8::1", "bob", "2001:db8:", "1:bob")
	f.Add("a\x00\x00\x00\x01", "b", "a", "\x00\x00\x00\x01b")
	f.Add("", "ab", "ab", "")
	f.Add("\x00\x00\x00\x00", "a\x00\x00\x00\x01", "\x00\x00\x00\x01", "\xff\xff\xff\xff")
	f.Fuzz(func(t *testing.T, a, b, c, d string) {
		join := func(parts ...string) []byte {
			var fs []core.KeyFunc
			for _, p := range parts {
				fs = append(fs, keyfuncs.Static(p))
			}
			key, err := keyfuncs.Join(fs...)(nil, &request{})
			if err != nil {
				t.Fatal(err)
			}
			if again := keyfuncs.JoinKeys(parts...); again != string(key) {
				t.Errorf("Join of %q is %q, JoinKeys %q", parts, key, again)
			}
			if split := keyfuncs.SplitKeys(string(key)); !slices.Equal(split, parts) {
				t.Errorf("Join of %q is %q, which splits into %q", parts, key, split)
			}
			return key
		}
		for _, any := range []string{a, b, c, d} {
			if parts := keyfuncs.SplitKeys(any); parts != nil && keyfuncs.JoinKeys(parts...) != any {
				t.Errorf("%q splits into %q, which is another key", any, parts)
			}
		}
		if (a != c || b != d) && bytes.Equal(join(a, b), join(c, d)) {
			t.Errorf("(%q, %q) and (%q, %q) are one key", a, b, c, d)
		}
		if len(a) > 0 && bytes.Equal(join(a), join(a, b)) && b != "" {
			t.Errorf("(%q) and (%q, %q) are one key", a, a, b)
		}
	})
}

func TestSplitKeysOfWhatIsNoKeyOfJoin(t *testing.T) {
	for _, key := range []string{
		"", "a", "abc", "192.0.2.1",
		"\x00\x00\x00\x01",                         // a part of one byte that is missing
		"a\x00\x00\x00\x02",                        // of two
		"ab\x00\x00\x00\x01",                       // a byte before the first part
		"ab\xff\xff\xff\xff", "ab\x80\x00\x00\x00", // lengths that are negative in 32 bits
	} {
		if parts := keyfuncs.SplitKeys(key); parts != nil {
			t.Errorf("%q splits into %q", key, parts)
		}
	}
}

func ExampleJoin() {
	r := &request{remote: "192.0.2.1:80", cookies: map[string]string{"session": "s1"}}
	show(keyfuncs.Join(keyfuncs.ClientIP(), keyfuncs.Cookie("session")), r)
	// Output: "192.0.2.1\x00\x00\x00\ts1\x00\x00\x00\x02" <nil>
}

func ExampleJoinKeys() {
	hit := core.Hit{Rule: "login", Key: keyfuncs.JoinKeys("192.0.2.1", "alice")}
	fmt.Printf("%q\n", hit.Key)
	// Output: "192.0.2.1\x00\x00\x00\talice\x00\x00\x00\x05"
}

func ExampleSplitKeys() {
	key := "192.0.2.1\x00\x00\x00\talice\x00\x00\x00\x05"
	fmt.Println(strings.Join(keyfuncs.SplitKeys(key), " "))
	// Output: 192.0.2.1 alice
}
