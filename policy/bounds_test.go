package policy_test

import (
	"log/slog"
	"testing"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/policy"
)

// What a file may say is the same with the file's own store and with another in its
// place, as floodgate check has it: no file passes the check and fails in the
// service.
func TestACheckedFileIsTakenByTheService(t *testing.T) {
	const memcached, redis, synced = `memcached: {servers: ["127.0.0.1:1"]}`, `redis: {address: "127.0.0.1:1"}`, `synced: {redis: {address: "127.0.0.1:1"}}`
	for _, c := range []struct {
		store, limits string
		taken         bool
	}{
		{memcached, "1/29d fixed_window", true},
		{memcached, "1/719h fixed_window", true},
		{memcached, "1/2591997s fixed_window", true}, // 30 days less three seconds
		{memcached, "1/2591998s fixed_window", false},
		{memcached, "1/30d fixed_window", false},
		{memcached, "1/31d fixed_window", false},
		{memcached, "1/14d", true},
		{memcached, "1/15d", false},
		{memcached, "1/29d sliding_log", true},
		{memcached, "1/30d sliding_log", false},
		{memcached, "1/29d bucketed_window precision=1d", false},
		{memcached, "10/10d token_bucket burst=29", true},
		{memcached, "10/10d token_bucket burst=31", false},
		{redis, "1/366d", true},
		{redis, "1/367d", false},
		{redis, "1/0s", false},
		{redis, "2147483647/d", true},
		{redis, "2147483648/d", false},
		{synced, "1/30d fixed_window aligned", true},
		{synced, "1/30d fixed_window", false},
		{synced, "1/m aligned", true},
		{synced, "1/m sliding_log", false},
	} {
		text := []byte("store: {" + c.store + "}\npolicies: [{name: a, limits: '" + c.limits + "'}]")
		log := policy.Log(slog.New(slog.DiscardHandler))
		memory := core.Must(core.NewMemory(core.MemoryConfig{}))
		checked, checkErr := policy.Parse("f", text, log, policy.WithStore(memory))
		served, serveErr := policy.Parse("f", text, log, policy.AnotherInstance())
		if (checkErr == nil) != c.taken || (serveErr == nil) != c.taken {
			t.Errorf("%s, %s: the check says %v, the service says %v, taken: %t", c.store, c.limits, checkErr, serveErr, c.taken)
		}
		if !c.taken && checkErr != nil && serveErr != nil && checkErr.Error() != serveErr.Error() {
			t.Errorf("%s, %s: the check says\n%v\nthe service says\n%v", c.store, c.limits, checkErr, serveErr)
		}
		for _, set := range []*policy.Set{checked, served} {
			if set != nil {
				if err := set.Close(); err != nil && c.store != synced {
					t.Error(err)
				}
			}
		}
		if err := memory.Close(); err != nil {
			t.Error(err)
		}
	}
}
