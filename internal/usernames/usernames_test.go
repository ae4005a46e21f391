package usernames_test

import (
	"errors"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/usernames"
)

func TestPlain(t *testing.T) {
	for _, s := range []string{"alice", "john smith", "Zoë", "山田", "a.b@c.example", "\u00a0alice\u3000", "\u2028alice\u0085\u1680", strings.Repeat("a", usernames.MaxLength)} {
		if got, err := usernames.Plain(s); err != nil || got != strings.TrimSpace(s) {
			t.Errorf("%q: %q, %v", s, got, err)
		}
	}
	for _, s := range []string{
		"a\x00b", "a\u0080b", "\u0080", "a\x1fb", "alice\x00", "a\tb", "a\x7fb", "a\u0085b", "a\u00a0b", "a\u00adb", "a\u1680b", "a\u2003b", "a\u200bb", "a\u200db", "a\u2028b", "a\u2029b",
		"a\u034fb", "a\u115fb", "a\u1160b", "a\u17b4b", "a\u180bb", "a\u180eb", "a\u3164b", "a\ufe0fb", "a\uffa0b", "a\u2065b", "a\U000e0100b", "a\u2800b", // invisible
		"a\u202eb", "a\u2060b", "a\u3000b", "\ufeffalice", "alice\xff", "a\U000e0041b", strings.Repeat("a", usernames.MaxLength+1), strings.Repeat(" ", usernames.MaxLength) + "alice",
	} {
		if got, err := usernames.Plain(s); !errors.Is(err, core.ErrBadRequest) {
			t.Errorf("%q: %q, %v, want a bad request", s, got, err)
		}
	}
}

// If one of the functions for letter case maps two names to the same text, they have the same key.
func TestFoldJoinsNamesThatHandlersReadAsTheSame(t *testing.T) {
	fold := func(s string) string {
		folded, err := usernames.Fold(s)
		if err != nil {
			t.Fatalf("%q: %v", s, err)
		}
		return folded
	}
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if r >= 0xd800 && r < 0xe000 {
			continue // no characters
		}
		s := string(r)
		for _, other := range []string{strings.ToLower(s), strings.ToUpper(s), strings.ToTitle(s), string(unicode.SimpleFold(r))} {
			if other != s && fold(other) != fold(s) {
				t.Errorf("%q (%U) has the key %q, and %q has %q", s, r, fold(s), other, fold(other))
			}
		}
	}
}

// FuzzFold tests that Fold does not change its own results, and keeps the word.
func FuzzFold(f *testing.F) {
	f.Add("Alice")
	f.Add("ſtraße K")
	f.Add("\xff")
	f.Fuzz(func(t *testing.T, s string) {
		folded, err := usernames.Fold(s)
		if (err == nil) != utf8.ValidString(s) {
			t.Fatalf("%q: error %v", s, err)
		}
		if again, _ := usernames.Fold(folded); err == nil && again != folded {
			t.Errorf("%q folds to %q, and that to %q", s, folded, again)
		}
		if dotted := strings.NewReplacer("İ", "i", "ı", "i").Replace(s); err == nil && !strings.EqualFold(dotted, folded) {
			t.Errorf("%q folds to %q, another word", s, folded)
		}
	})
}
