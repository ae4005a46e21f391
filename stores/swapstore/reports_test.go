package swapstore

import (
	"log/slog"
	"strings"
	"testing"
)

// A line a minute is logged, with the number of those that were left out. A clock
// that is set back does not silence the log.
func TestReportsAreLoggedOnceAMinute(t *testing.T) {
	var log strings.Builder
	u := reports{log: slog.New(slog.NewTextHandler(&log, nil))}
	for i, c := range []struct {
		now  int64
		want string // "": nothing is logged
	}{
		{codecNow, "more=0"}, {codecNow, ""}, {codecNow + 1, ""}, {codecNow + reportEvery - 1, ""},
		{codecNow + reportEvery, "more=3"}, {codecNow + reportEvery, ""}, {codecNow, "more=1"}, {codecNow + 1, ""},
	} {
		log.Reset()
		u.report("l", "n", false, c.now)
		if got := log.String(); c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("report %d: logged %q, want %q", i, got, c.want)
		}
	}
}
