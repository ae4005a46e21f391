package main

import (
	"strings"
	"testing"

	"github.com/floodgate-go/floodgate/internal/redistest"
)

// top lists a key that --key gives with the quota that the file has for it, and leaves out a
// key whose quota is unlimited.
func TestTopKnowsTheQuotasOfKeys(t *testing.T) {
	server := redistest.Start(t)
	path := file(t, "p.yaml", "policies: [{name: api, key: ip, limits: 10/h, quotas: {ann: 5, bob: unlimited}}]")
	api := service(t, server, path)
	for _, key := range []string{"ann", "bob", "eve"} {
		take(t, api, 3, key)
	}
	out, _ := expect(t, exitFine, "", "top", path, "--store", "redis://"+server.Addr, "--key", "ann", "--key", "bob", "--key", "eve")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if len(lines) != 4 || lines[0] != "3 counters" {
		t.Fatalf("prints\n%s", out)
	}
	for i, want := range []string{"5 per 1h 3 2 ann", "10 per 1h 3 7 eve"} {
		cells := strings.Fields(lines[i+2])
		for _, cell := range strings.Fields(want) {
			found := false
			for _, c := range cells {
				found = found || c == cell
			}
			if !found {
				t.Errorf("%q: want %s", lines[i+2], want)
			}
		}
	}
}
