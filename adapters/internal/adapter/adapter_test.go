package adapter

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/floodgatetest"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

func TestSetCostWithoutACostIsLoggedOnce(t *testing.T) {
	var log bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	defer slog.SetDefault(before)
	saidNoCost.Store(false)
	rule := core.Rule{Name: "ip", Key: keyfuncs.ClientIP(), Limits: []core.Limit{core.PerMinute(9)}}
	plain := core.Must(core.New(core.Config{Rules: []core.Rule{rule}}))
	rule.Cost = func(core.Request) (int64, error) { return 1, nil }
	weighs := core.Must(core.New(core.Config{Rules: []core.Rule{rule}}))
	r := floodgatetest.NewRequest("GET", "/")
	if e := (&Exposed{Decision: weighs.Check(r)}); !e.SetCost(5) || log.Len() > 0 {
		t.Errorf("with a Cost: %s", log.String())
	}
	for range 2 {
		var none *Exposed
		if e := (&Exposed{Decision: plain.Check(r)}); none.SetCost(5) || e.SetCost(5) {
			t.Error("without a Cost, SetCost returns true")
		}
	}
	if n := strings.Count(log.String(), "SetCost has set no cost"); n != 1 {
		t.Errorf("%d lines: %s", n, log.String())
	}
}

func TestOutcome(t *testing.T) {
	for _, row := range []struct {
		response           Response
		status             int
		canceled, panicked bool
	}{
		{Response{}, 200, false, false},
		{Response{Status: 404}, 404, false, false},
		{Response{Status: 200, Ended: true}, 499, true, false},
		{Response{Ended: true}, 499, true, false},
		{Response{Panicked: true}, 500, false, true},
		{Response{Status: 201, Panicked: true}, 201, false, true},
		{Response{Panicked: true, Ended: true}, 500, true, true},
		{Response{Status: 201, Panicked: true, Ended: true}, 201, true, true},
	} {
		o := row.response.Outcome()
		if o.Status != row.status || o.Canceled != row.canceled || o.Panicked != row.panicked {
			t.Errorf("%+v becomes %+v", row.response, o)
		}
	}
}
