package keyfuncs_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/floodgate-go/floodgate/internal/requestlog"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

// logged is a request to a limiter with a log.
type logged struct {
	*request
	log *slog.Logger
}

func (r logged) Value(key any) any {
	if key == (requestlog.Key{}) {
		return r.log
	}
	return nil
}

// PathValue writes one line about requests without a value, and none about others.
func TestPathValueLogsTheFirstRequestWithoutAValue(t *testing.T) {
	var text bytes.Buffer
	log := slog.New(slog.NewTextHandler(&text, nil))
	key := keyfuncs.PathValue("id")
	for i, step := range []struct {
		value string
		lines int
	}{{"7", 0}, {"", 1}, {"", 1}, {"8", 1}} {
		got, err := key(nil, logged{&request{params: map[string]string{"id": step.value}}, log})
		if err != nil || string(got) != step.value {
			t.Errorf("request %d: %q, %v", i, got, err)
		}
		if lines := strings.Count(text.String(), "PathValue finds no value"); lines != step.lines {
			t.Errorf("after request %d: %d lines, want %d:\n%s", i, lines, step.lines, text.String())
		}
	}
}
