package main

import (
	"strings"
	"testing"

	"github.com/floodgate-go/floodgate/internal/redistest"
)

// Without --store, the store is that of the file: the command reports which one, and
// never its password.
func TestTheStoreOfTheFile(t *testing.T) {
	server := redistest.Start(t)
	server.MustDo("CONFIG", "SET", "requirepass", "hush-hush")
	t.Setenv("FLOODGATE_TEST_PASSWORD", "hush-hush")
	const policies = "policies: [{name: api, key: ip, limits: 10/h aligned}]\n"
	path := file(t, "limits.yaml", policies+"store: {redis: {address: '"+server.Addr+"', password: {env: FLOODGATE_TEST_PASSWORD}, db: 3}}\n")
	for want, args := range map[string][]string{
		"0 counters\n": {"top", path},
		"api   10 per 1h (aligned)  0     10         0s\n":         {"inspect", path, "--policy", "api", "--key", "k"},
		"nothing to reset: key k of policy api has used nothing\n": {"reset", path, "--policy", "api", "--key", "k"},
	} {
		out, errs := expect(t, exitFine, "", args...)
		if !strings.Contains(out, want) || errs != "store of "+path+": Redis "+server.Addr+", database 3\n" {
			t.Errorf("%q: prints %q and %q", args, out, errs)
		}
	}
	// --store comes first, and needs no word.
	if _, errs := expect(t, exitFine, "", "top", path, "--store", "redis://:hush-hush@"+server.Addr+"/1"); errs != "" {
		t.Errorf("with --store: %q", errs)
	}

	for name, c := range map[string]struct {
		code        int
		store, want string
	}{
		"none":          {exitUsage, "", "has no field store: write --store redis://127.0.0.1:6379/0\n"},
		"memcached":     {exitUsage, "store: {memcached: {servers: ['127.0.0.1:1']}}", "is memcached: write --store"},
		"synced":        {exitUsage, "store: {synced: {redis: {address: '127.0.0.1:1'}}}", "is synced, whose counters have another form: write --store"},
		"cluster":       {exitFailed, "store: {redis: {address: '127.0.0.1:1', cluster: true}}", ": Redis cluster 127.0.0.1:1\n"},
		"no password":   {exitFailed, "store: {redis: {address: '127.0.0.1:1', password: {env: FLOODGATE_TEST_NONE}}}", "the variable FLOODGATE_TEST_NONE is not in the environment"},
		"wrong":         {exitFailed, "store: {redis: {address: '127.0.0.1:1', password: hush-hush}}", ": Redis 127.0.0.1:1, database 0\n"},
		"a broken file": {exitFailed, "store: 1", "limits.yaml:2:8: store: "},
	} {
		_, errs := expect(t, c.code, "", "top", file(t, "limits.yaml", policies+c.store))
		if !strings.Contains(errs, c.want) || strings.Contains(errs, "hush") {
			t.Errorf("%s: says %swant %s", name, errs, c.want)
		}
	}
	for url, want := range map[string]string{
		"127.0.0.1:6379":            `usage: --store: "127.0.0.1:6379" has no scheme: want a URL such as redis://127.0.0.1:6379/0` + "\n",
		"user:hush-hush@localhost":  `usage: --store: "localhost" has no scheme: want a URL such as redis://127.0.0.1:6379/0` + "\n",
		"http://u:hush-hush@a.test": `want redis, rediss, unix`,
	} {
		if _, errs := expect(t, exitUsage, "", "top", path, "--store", url); !strings.Contains(errs, want) || strings.Contains(errs, "hush") {
			t.Errorf("%s: %q, want %s", url, errs, want)
		}
	}
}
