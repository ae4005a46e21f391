package words

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/floodgate-go/floodgate/core"
)

func TestShorten(t *testing.T) {
	sixty := strings.Repeat("a", 60)
	for text, want := range map[string]string{
		"":                              "",
		sixty:                           sixty,
		sixty + "b":                     sixty[:57] + "...",
		strings.Repeat("a", 56) + "ööö": strings.Repeat("a", 56) + "...", // no half of a character
	} {
		if got := Shorten(text); got != want || !utf8.ValidString(got) {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}

func TestReason(t *testing.T) {
	limits := fmt.Errorf("%w: limits: item 1: want a quota", core.ErrConfig)
	for _, row := range []struct {
		err  error
		want string
	}{
		{fmt.Errorf("%w: Quota: -1: must be 0 or more", core.ErrConfig), "Quota: -1: must be 0 or more"},
		{errors.Join(fmt.Errorf("%w: a", core.ErrConfig), fmt.Errorf("%w: b", core.ErrConfig)), "a; b"},
		{fmt.Errorf("\"x\", item 1: %w", limits), "limits: item 1: want a quota"},
		{errors.New("other"), "other"},
	} {
		if got := Reason(row.err); got != row.want {
			t.Errorf("%q becomes %q, want %q", row.err, got, row.want)
		}
	}
}

func TestDuration(t *testing.T) {
	for d, want := range map[time.Duration]string{
		time.Hour: "1h", 90 * time.Minute: "1h30m", time.Minute: "1m", 61 * time.Second: "1m1s", 10 * time.Minute: "10m",
		20 * time.Hour: "20h", time.Hour + time.Second: "1h0m1s", 1500 * time.Millisecond: "1.5s", 0: "0s",
	} {
		if got := Duration(d); got != want {
			t.Errorf("%v becomes %q, want %q", d, got, want)
		}
	}
}

func TestShown(t *testing.T) {
	for s, want := range map[string]string{
		"": "", "redis:6379": "redis:6379", "redis://h:1/0": "redis://h:1/0", "a ? b : c": "a ? b : c",
		"u:p@h:1": "...@h:1", "redis://u:p@h:1": "...@h:1", "redis://u:p@q@h:1": "...@h:1", "p@": "...@",
		"redis://h?sentinel_password=p": "redis://h?...", "redis://h?sentinel_password=p@q": "...", "redis://u:p?q@h": "...",
		"@h": "...@h", "?x://h": "?...", "@h?p": "...", "?p@h": "...",
		strings.Repeat("p", 60) + "@h": "...@h", "p@" + strings.Repeat("h", 60): "...@" + strings.Repeat("h", 53) + "...",
	} {
		if got := Shown(s); got != want {
			t.Errorf("%q: %q, want %q", s, got, want)
		}
	}
}
