package redisstore

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Values that cannot be read are logged once a minute, with how many reports were left out since.
func TestReportsOfAMinuteAreOneLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		s := New(nil, Log(slog.New(slog.NewTextHandler(&out, nil))))
		for _, want := range []string{"more=0", "more=3", "more=0"} {
			out.Reset()
			s.report(items(t, s, "k"))
			if got := out.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, want) {
				t.Errorf("logged %q, want %s", got, want)
			}
			left := 0
			if want == "more=0" {
				left = 3
			}
			for range left {
				out.Reset()
				if s.report(items(t, s, "k")); out.Len() > 0 {
					t.Errorf("logged again: %s", &out)
				}
			}
			time.Sleep(reportEvery)
		}
	})
}
