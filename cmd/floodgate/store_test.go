package main

import (
	"testing"

	"github.com/floodgate-go/floodgate/core"
)

// SCAN may return a counter twice. Each limit of a counter has a line of its own.
func TestTheNearestHaveEachLimitOfACounterOnce(t *testing.T) {
	hour, day := core.Limit{Name: "hour"}, core.Limit{Name: "day"}
	all := keepNearest([]near{
		{name: "k", limit: hour, used: 0.5}, {name: "k", limit: day, used: 0.5},
		{name: "k", limit: hour, used: 0.5}, {name: "other", limit: day, used: 0.9},
	}, 10)
	if len(all) != 3 || all[0].name != "other" || all[1].limit.Name != "day" || all[2].limit.Name != "hour" {
		t.Errorf("%+v, want other, and the day and the hour of k", all)
	}
}
