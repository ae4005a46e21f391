package main

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/memcachedtest"
	"github.com/floodgate-go/floodgate/internal/processtest"
	"github.com/floodgate-go/floodgate/internal/redistest"
	"github.com/floodgate-go/floodgate/stores/denycache"
)

func TestMain(m *testing.M) { processtest.Main(m, main) }

// version is what two versions of the program differ in.
type version struct{ attempts, accountFailures string }

var (
	older = version{"20/h", "5/h fixed_window"}
	newer = version{"30/2h", "10/2h fixed_window"}
)

// instance is one process of the program.
type instance struct {
	process *processtest.Process
	url     string
}

func deploy(t *testing.T, store string, v version) instance {
	t.Helper()
	addr := processtest.FreeAddr(t, 0)
	p := processtest.Start(t, "-addr", addr, "-store", store, "-store-timeout", "20s", "-trusted-proxies", "127.0.0.1/32",
		"-attempts", v.attempts, "-failures", "5/h fixed_window", "-account-failures", v.accountFailures, "-cookie-secret", strings.Repeat("s", 32))
	i := instance{p, "http://" + addr}
	processtest.WaitFor(t, "an instance to answer", func() bool {
		res, err := http.Get(i.url + "/healthz")
		if err != nil {
			return false
		}
		_ = res.Body.Close()
		return res.StatusCode == http.StatusOK
	})
	return i
}

// balancer sends each request to the next of several instances.
type balancer struct {
	mu        sync.Mutex
	instances []instance
	next      int
	in        []*sync.WaitGroup // requests at each instance
}

func (b *balancer) pick() (base string, done func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.next = (b.next + 1) % len(b.instances)
	b.in[b.next].Add(1)
	return b.instances[b.next].url, b.in[b.next].Done
}

// replace puts another instance into the place of one, and returns the one that
// was there when no request is at it any more.
func (b *balancer) replace(i int, with instance) instance {
	b.mu.Lock()
	was, busy := b.instances[i], b.in[i]
	b.instances[i], b.in[i] = with, new(sync.WaitGroup)
	b.mu.Unlock()
	busy.Wait()
	return was
}

// attack is guesses of wrong passwords, and how many of them were judged: each
// from an address and for a username of its own, unless it is given.
type attack struct {
	address, username string
	judged, denied    atomic.Int64
}

func (a *attack) guess(t *testing.T, client *http.Client, b *balancer) {
	address, username := a.address, a.username
	if address == "" {
		address = fmt.Sprintf("10.%d.%d.%d", rand.IntN(256), rand.IntN(256), rand.IntN(256))
	}
	if username == "" {
		username = fmt.Sprint("user", rand.Uint64())
	}
	base, done := b.pick()
	defer done()
	form := url.Values{"username": {username}, "password": {"wrong"}}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base+"/login", strings.NewReader(form.Encode()))
	if err != nil {
		t.Error(err)
		return
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("X-Forwarded-For", address)
	res, err := client.Do(r)
	if err != nil {
		t.Errorf("a request has no answer: %v", err)
		return
	}
	_ = res.Body.Close()
	switch res.StatusCode {
	case http.StatusUnauthorized: // the program has looked at the password
		a.judged.Add(1)
	case http.StatusTooManyRequests:
		a.denied.Add(1)
	default:
		t.Errorf("status %d", res.StatusCode)
	}
}

// Four processes are replaced, one after the other, by ones whose limits have other windows, while
// attackers guess all the time: from one address, and for one account. Each version allows its own
// quota, so that no more guesses are judged than the larger of both promises.
func TestARollingDeployUnderAttack(t *testing.T) {
	for kind, start := range map[string]func(t *testing.T) string{
		"redis":     func(t *testing.T) string { return "redis://" + redistest.Start(t).Addr + "/0" },
		"memcached": func(t *testing.T) string { return "memcached://" + memcachedtest.Start(t).Addr },
	} {
		t.Run(kind, func(t *testing.T) {
			store := start(t)
			b := &balancer{}
			for range 4 {
				b.instances = append(b.instances, deploy(t, store, older))
				b.in = append(b.in, new(sync.WaitGroup))
			}
			oneAddress, oneAccount := &attack{address: "203.0.113.9"}, &attack{username: "alice"}
			client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 8}, Timeout: time.Minute}
			defer client.CloseIdleConnections()
			stop := make(chan struct{})
			var attackers sync.WaitGroup
			for i := range 6 {
				attackers.Go(func() {
					for {
						select {
						case <-stop:
							return
						default:
							[]*attack{oneAddress, oneAccount}[i%2].guess(t, client, b)
						}
					}
				})
			}
			// Guesses go on for longer than an instance remembers a denial by
			// itself: else it would hide what the shared counters say.
			attacked := func() {
				forgotten := time.After(denycache.DefaultLongest + 100*time.Millisecond)
				for _, a := range []*attack{oneAddress, oneAccount} {
					before := a.denied.Load()
					processtest.WaitFor(t, "guesses", func() bool { return a.denied.Load() > before+20 || t.Failed() })
				}
				<-forgotten
			}
			for i := range b.instances {
				attacked()
				b.replace(i, deploy(t, store, newer)).process.Terminate()
			}
			attacked()
			close(stop)
			attackers.Wait()
			for _, c := range []struct {
				what         string
				attack       *attack
				older, newer string
			}{
				{"from one address", oneAddress, older.attempts, newer.attempts},
				{"for one account", oneAccount, older.accountFailures, newer.accountFailures},
			} {
				first, second := core.Must(core.ParseLimits(c.older))[0], core.Must(core.ParseLimits(c.newer))[0]
				got, promise := c.attack.judged.Load(), max(first.WorstCase(), second.WorstCase())
				if got > promise {
					t.Errorf("%d guesses %s were judged, at most %d are promised", got, c.what, promise)
				}
				if got != first.Quota+second.Quota {
					t.Errorf("%d guesses %s were judged, want %d by the older version and %d by the newer one", got, c.what, first.Quota, second.Quota)
				}
			}
			for _, i := range b.instances {
				i.process.Terminate()
			}
		})
	}
}
