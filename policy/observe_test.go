package policy_test

import (
	"context"
	"strings"
	"testing"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/policy"
)

// observer keeps what it is told of.
type observer struct {
	configurations []string
	decided        []string
}

func (o *observer) Observe(limiter string, rules []core.Rule) core.ObserverFuncs {
	var names []string
	for _, r := range rules {
		names = append(names, r.Name)
	}
	o.configurations = append(o.configurations, limiter+": "+strings.Join(names, " "))
	return core.ObserverFuncs{Decided: func(_ context.Context, seen core.Observation) {
		o.decided = append(o.decided, rules[seen.Rule].Name+" "+seen.Reason.String())
	}}
}

// The observer is told of each file that is put in force, and not of one that is not.
func TestObserver(t *testing.T) {
	o := new(observer)
	text := func(names ...string) []byte {
		file := "name: site\npolicies:\n"
		for _, n := range names {
			file += "  - name: " + n + "\n    limits: [1/m]\n    key: ip\n"
		}
		return []byte(file)
	}
	s, err := policy.Parse("p.yaml", text("a"), policy.WithObserver(o))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	take := func(rule string) { _, _ = s.Limiter().Take(t.Context(), 1, core.Hit{Rule: rule, Key: "k"}) }
	take("a")
	if err := s.Replace(text("b", "b")); err == nil {
		t.Error("two policies have one name")
	}
	if err := s.Replace(text("b", "a")); err != nil {
		t.Fatal(err)
	}
	take("a")
	take("b")
	if got := strings.Join(o.configurations, "; "); got != "site: a; site: b a" {
		t.Errorf("configurations: %s", got)
	}
	if got := strings.Join(o.decided, "; "); got != "a within limits; a over limit; b within limits" {
		t.Errorf("decisions: %s", got)
	}
}
