package words

import (
	"errors"
	"fmt"
	"strings"
	"testing"
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
		{fmt.Errorf("%w: Rules[1] (\"a-b\").Limits: 17 of them", core.ErrConfig), "Limits: 17 of them"},
		{errors.New("other"), "other"},
	} {
		if got := Reason(row.err); got != row.want {
			t.Errorf("%q becomes %q, want %q", row.err, got, row.want)
		}
	}
}
