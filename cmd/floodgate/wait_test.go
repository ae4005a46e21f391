package main

import (
	"strings"
	"testing"

	"github.com/floodgate-go/floodgate/internal/redistest"
)

// A parameter of the route is given on the command line.
func TestTheParametersOfTheRouteOfAnExplanation(t *testing.T) {
	path := file(t, "limits.yaml", `policies: [{name: api, key: 'param["id"]', missing: skip, limits: 1/m}]`)
	out, _ := expect(t, 0, "", "explain", path, "--param", "id=a=b")
	if !strings.Contains(out, "rule api: key a=b") {
		t.Errorf("explain says %q", out)
	}
	if out, _ = expect(t, 0, "", "explain", path); !strings.Contains(out, `the request has no param["id"]`) {
		t.Errorf("explain says %q", out)
	}
	expect(t, 2, "", "explain", path, "--param", "id")
}

// The commands say that requests wait, and that nobody waits in a replay.
func TestTheCommandsKnowWaits(t *testing.T) {
	path := file(t, "limits.yaml", "policies: [{name: api, key: ip, limits: 1/m, wait: 90s}, {name: tried, key: ip, limits: 9/m, wait: 3s, dry-run: true}]")
	out, _ := expect(t, 0, "", "explain", path)
	if strings.Count(out, "waits for its turn") != 1 || !strings.Contains(out, "  if a limit denies it, it waits for its turn, at most 1m30s\n  rule api") {
		t.Errorf("explain says %q", out)
	}
	url := "redis://" + redistest.Start(t).Addr
	for policy, want := range map[string]bool{"api": true, "tried": false} {
		out, _ = expect(t, 0, "", "inspect", path, "--store", url, "--policy", policy)
		if strings.HasSuffix(out, "\na request over a limit waits for its turn, at most 1m30s\n") != want {
			t.Errorf("inspect says of %s: %q", policy, out)
		}
	}
	log := file(t, "access.log", strings.Repeat(`192.0.2.1 - - [21/Nov/2026:10:00:00 +0000] "GET / HTTP/1.1" 200 1`+"\n", 3))
	out, _ = expect(t, 0, "", "replay", path, log, "--sweep", "--quiet")
	if strings.Count(out, "nobody waits: requests that would have waited for their turn count as denied (policies with wait: api)") != 1 {
		t.Errorf("replay says %q", out)
	}
}
