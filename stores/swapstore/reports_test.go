package swapstore_test

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
	"github.com/floodgate-go/floodgate/stores/swapstore"
)

// A line a minute is logged. A clock that is set back does not silence the log.
func TestReportsAreLoggedOnceAMinute(t *testing.T) {
	var log strings.Builder
	c, s := newClock(), newMapSwapper()
	b := core.Must(core.Must(swapstore.New(s, swapstore.Config{Clock: c.Now, Log: slog.New(slog.NewTextHandler(&log, nil))})).Open("l", stepRules))
	for i, step := range []struct {
		pass time.Duration
		want bool
	}{
		{0, true}, {0, false}, {time.Microsecond, false}, {time.Minute - 2*time.Microsecond, false},
		{time.Microsecond, true}, {0, false}, {-time.Minute, true}, {1, false},
	} {
		c.advance(step.pass)
		log.Reset()
		s.values[core.StoreRule{Name: "a"}.StoredKey("l", []byte("k"))] = swapstore.Value{Value: []byte("abc"), Version: 0}
		if err := storetest.Do(t.Context(), b, core.OpPeek, batchOf(1)); err != nil || strings.Contains(log.String(), "cannot be read") != step.want {
			t.Errorf("report %d: %v, logged %q, want a line: %v", i, err, log.String(), step.want)
		}
	}
}
