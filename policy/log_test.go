package policy_test

import (
	"bytes"
	"encoding/json"
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

func TestTheLogHasEachFieldOfAWarning(t *testing.T) {
	log := &bytes.Buffer{}
	set, err := policy.Parse("f", []byte("policies: [{name: a, key: route, limits: 1/h}]"), policy.Log(slog.New(slog.NewJSONHandler(log, nil))))
	if err != nil {
		t.Fatal(err)
	}
	var line struct {
		File, Field, Problem, Hint string
		Line                       int
	}
	if err := json.NewDecoder(log).Decode(&line); err != nil {
		t.Fatal(err)
	}
	w := set.Warnings()[0]
	if w.Hint == "" || line.File != "f" || line.Line != 1 || line.Field != w.Field || line.Problem != w.Problem || line.Hint != w.Hint {
		t.Errorf("the line has %+v, the warning %+v", line, w)
	}
	if err := set.Close(); err != nil {
		t.Error(err)
	}
}

func TestANilLogIsTheDefault(t *testing.T) {
	var log bytes.Buffer
	standard := slog.Default()
	t.Cleanup(func() { slog.SetDefault(standard) })
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	set, err := policy.Parse("f", []byte("policies: [{name: a, key: route, limits: 1/h}]"), policy.Log(nil))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(log.String(), "probably a mistake") {
		t.Errorf("logged: %s", &log)
	}
	if err := set.Close(); err != nil {
		t.Error(err)
	}
}
