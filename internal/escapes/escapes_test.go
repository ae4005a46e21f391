package escapes_test

import (
	"net/url"
	"testing"

	"github.com/floodgate-go/floodgate/internal/escapes"
)

func TestDecode(t *testing.T) {
	for ok, texts := range map[bool]map[string]string{
		true:  {"": "", "a": "a", "a+b": "a b", "%61": "a", "%6A%6b": "jk", "%C3%BC": "ü", "%00": "\x00", "%2561": "%61"},
		false: {"%": "%", "%6": "%6", "a%": "a%", "%zz+": "%zz ", "%6g%61": "%6ga", "%%61": "%a", "%+1": "% 1", "%-1": "%-1", "%_1": "%_1", "%0x": "%0x"},
	} {
		for s, want := range texts {
			if got, decoded := escapes.Decode(s); got != want || decoded != ok {
				t.Errorf("%q: %q, %t, want %q and %t", s, got, decoded, want, ok)
			}
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
