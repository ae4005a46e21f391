package main

import (
	"strings"
	"testing"

	"github.com/floodgate-go/floodgate/internal/redistest"
)

// inspect says what a key has used of the quota that the file has for it, of one that is
// unlimited, too.
func TestInspectKnowsTheQuotasOfKeys(t *testing.T) {
	server := redistest.Start(t)
	path := file(t, "p.yaml", "policies: [{name: api, key: ip, limits: [10/h, 20/d], quotas: {ann: 5/h, bob: unlimited}}]")
	api := service(t, server, path)
	for key, want := range map[string]string{
		"ann": "api 5 per 1h 3 2 ",
		"bob": "api unlimited per 1h 3 unlimited ",
		"eve": "api 10 per 1h 3 7 ",
	} {
		take(t, api, 3, key)
		out, _ := expect(t, exitFine, "", "inspect", path, "--store", "redis://"+server.Addr, "--policy", "api", "--key", key)
		if got := strings.Join(strings.Fields(out), " "); !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", key, got, want)
		}
	}
}
