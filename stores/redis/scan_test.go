package redisstore_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/redistest"
	redisstore "github.com/floodgate-go/floodgate/stores/redis"
)

func TestScan(t *testing.T) {
	t.Parallel()
	single := redis.NewClient(&redis.Options{Addr: redistest.Start(t).Addr})
	cluster := redis.NewClusterClient(&redis.ClusterOptions{Addrs: redistest.StartCluster(t, 3).Addrs()})
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": redistest.Start(t).Addr, "b": redistest.Start(t).Addr}})
	for name, client := range map[string]interface {
		redisstore.Client
		Close() error
	}{"single": single, "cluster": cluster, "ring": ring} {
		t.Run(name, func(t *testing.T) {
			defer client.Close() //nolint:errcheck // the test is over
			store := redisstore.New(client, redisstore.Timeout(5*time.Second))
			limits := []core.Limit{{Quota: 100, Window: time.Hour}, {Quota: 50, Window: time.Minute}}
			rules := []core.Rule{{Name: "a", Limits: limits}, {Name: "b", Limits: limits[:1]}}
			limiter := core.Must(core.New(core.Config{Name: "scanned", Store: store, Rules: rules}))
			other := core.Must(core.New(core.Config{Name: "scanned-2", Store: store, Rules: rules[:1]}))
			const keys = 700 // more than one step
			for i := range keys {
				if _, err := limiter.Take(t.Context(), int64(1+i%40), core.Hit{Rule: "a", Key: fmt.Sprint(i)}); err != nil {
					t.Fatal(err)
				}
			}
			for rule, l := range map[string]*core.Limiter{"b": limiter, "a": other} {
				if _, err := l.Take(t.Context(), 7, core.Hit{Rule: rule, Key: "k"}); err != nil {
					t.Fatal(err)
				}
			}
			want := map[string]int64{}
			for i := range keys {
				want[core.StoreRule{Name: "a"}.StoredKey("scanned", []byte(fmt.Sprint(i)+"\x00"))] = int64(1 + i%40)
			}
			want[core.StoreRule{Name: "b"}.StoredKey("scanned", []byte("k\x00"))] = 7
			stored := []core.StoreRule{{Name: "a", Limits: limits}, {Name: "b", Limits: limits[:1]}}
			for range 2 { // the first changes nothing
				found := map[string]int64{}
				if err := store.Scan(t.Context(), "scanned", stored, func(s redisstore.Stored) error {
					found[s.Name] = 100 - s.Results[0].Remaining
					if s.Rule == "a" && s.Results[1].Remaining != s.Results[0].Remaining-50 {
						t.Errorf("%s: %+v", s.Name, s.Results)
					}
					return nil
				}); err != nil {
					t.Fatal(err)
				}
				if len(found) != len(want) {
					t.Errorf("%d counters were found, want %d", len(found), len(want))
				}
				for name, used := range want {
					if found[name] != used {
						t.Errorf("%s: %d used, want %d", name, found[name], used)
					}
				}
			}
			stop := errors.New("stop")
			if err := store.Scan(t.Context(), "scanned", stored, func(redisstore.Stored) error { return stop }); !errors.Is(err, stop) {
				t.Errorf("an error of the caller: %v", err)
			}
		})
	}
}

func TestScanOfAServerThatIsNotThere(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	defer client.Close() //nolint:errcheck // nothing was connected
	store := redisstore.New(client, redisstore.Timeout(200*time.Millisecond))
	if err := store.Scan(t.Context(), "a", []core.StoreRule{{Name: "r", Limits: []core.Limit{core.PerSecond(1)}}}, func(redisstore.Stored) error { return nil }); err == nil {
		t.Error("no error")
	}
}
