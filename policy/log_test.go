package policy_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/policy"
)

func TestAPolicyLogsWhatFails(t *testing.T) {
	var log bytes.Buffer
	s := newSite(t, "policies: [{name: api, rules: [{name: r, tiers: {default: 5/m, gold: 9/m}}]}]",
		policy.WithTier(func(core.Request) (string, error) { return "", errors.New("the database is gone") }),
		policy.Log(slog.New(slog.NewTextHandler(&log, nil))))
	for range 10 {
		s.send("GET", "/")
	}
	if strings.Count(log.String(), "a key function failed") != 1 || !strings.Contains(log.String(), "limiter=policies") || !strings.Contains(log.String(), "rule=api.r-default") || !strings.Contains(log.String(), "the database is gone") {
		t.Errorf("logged: %s", &log)
	}
}

func TestAPolicyThatKeysByRouteAroundTheRouterSaysSo(t *testing.T) {
	var log bytes.Buffer
	s := newSite(t, "policies: [{name: api, rules: [{name: r, key: route, limits: 5/m}]}]", policy.Log(slog.New(slog.NewTextHandler(&log, nil))))
	for range 10 {
		s.send("GET", "/")
	}
	if strings.Count(log.String(), "no matched route") != 1 || !strings.Contains(log.String(), "level=ERROR") || !strings.Contains(log.String(), "limiter=policies") || !strings.Contains(log.String(), "rule=api.r") {
		t.Errorf("logged: %s", &log)
	}
}
