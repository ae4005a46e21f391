package escapes_test

import (
	"net/url"
	"testing"

	"github.com/floodgate-go/floodgate/internal/escapes"
)

func TestDecode(t *testing.T) {
	for s, want := range map[string]string{
		"": "", "a": "a", "a+b": "a b", "%61": "a", "%6A%6b": "jk", "%C3%BC": "ü", "%00": "\x00", "%2561": "%61",
	} {
		if got, ok := escapes.Decode(s); got != want || !ok {
			t.Errorf("%q: %q, %t, want %q", s, got, ok, want)
		}
	}
	for s, want := range map[string]string{
		"%": "%", "%6": "%6", "a%": "a%", "%zz+": "%zz ", "%6g%61": "%6ga", "%%61": "%a", "%+1": "% 1", "%-1": "%-1", "%_1": "%_1", "%0x": "%0x",
	} {
		if got, ok := escapes.Decode(s); got != want || ok {
			t.Errorf("%q: %q, %t, want %q and false", s, got, ok, want)
		}
	}
}

// A text that net/url decodes has the same value here; any other is not ok.
func FuzzDecode(f *testing.F) {
	f.Add("a%61+%")
	f.Fuzz(func(t *testing.T, s string) {
		want, err := url.QueryUnescape(s)
		if got, ok := escapes.Decode(s); ok != (err == nil) || ok && got != want {
			t.Errorf("%q: %q, %t, net/url: %q, %v", s, got, ok, want, err)
		}
	})
}
