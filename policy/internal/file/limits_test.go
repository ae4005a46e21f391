package file

import (
	"reflect"
	"testing"

	"github.com/floodgate-go/floodgate/core"
)

// Limits mean the same in a file and in Go, whatever is left out.
func TestLimitsMeanTheSameInAFileAndInGo(t *testing.T) {
	for text, fields := range map[string]string{
		"5/m":                        "{quota: 5, window: m}",
		"3/10s fixed_window":         "{maximumRequests: 3, timePeriodInMilliseconds: 10000}",
		"100 per minute, 1 / S":      "[{quota: 100, window: Minute}, 1 per 1 second]",
		"9/month UTC":                "{quota: 9, window: Month}",
		"9/week UTC, 9/d":            "[{quota: 9, window: w, zone: UTC, algorithm: fixed_window}, {quota: 9, window: day}]",
		"9/day UTC, 9/month UTC":     "[{zone: UTC, quota: 9, window: 24h}, {zone: UTC, window: month, quota: 9}]",
		"9/31d":                      "{quota: 9, window: 31d}",
		"10/s aligned":               "{quota: 10, window: 1s, aligned: true}",
		"5/m fixed_window name=a":    "{quota: 5, window: 1m, algorithm: fixed_window, name: a}",
		"10/s token_bucket burst=20": "{quota: 10, window: 1s, algorithm: token_bucket, burst: 20}",
		"10/s, 100/h sliding_log":    "[{quota: 10, window: 1s}, 100/h sliding_log]",
		"5/m bucketed_window precision=1s, 9/d": "[{quota: 5, window: 1m, algorithm: bucketed_window, precision: 1s}, " +
			"{quota: 9, window: 1d}]",
	} {
		want, err := core.ParseLimits(text)
		if err != nil {
			t.Fatal(err)
		}
		for _, written := range []string{"'" + text + "'", fields} {
			got := readFine(t, "policies: [{name: a, limits: "+written+"}]").Policies[0].Rules[0].Limits
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%s: %v, in Go %s is %v", written, got, text, want)
			}
		}
	}
}
