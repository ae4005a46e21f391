//go:build unix

package redisstore_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
	"github.com/floodgate-go/floodgate/internal/processtest"
	redisstore "github.com/floodgate-go/floodgate/stores/redis"
)

// The server stops for a while, before it has seen the exchange.
func TestAServerThatStopsKeepsNobodyWaiting(t *testing.T) {
	t.Parallel()
	const timeout = 400 * time.Millisecond
	c := newCompany(t, timeout)
	signal := func(s syscall.Signal) {
		if err := syscall.Kill(c.server.PID(), s); err != nil {
			t.Error(err)
		}
	}
	c.travel(func() { signal(syscall.SIGSTOP) })
	c.wg.Wait()
	for i, err := range c.errs {
		if !of(redisstore.ClassTimedOut, true)(err) {
			t.Errorf("caller %d: error %v", i, err)
		}
	}
	signal(syscall.SIGCONT)
	c.check(of(redisstore.ClassTimedOut, true))
	processtest.WaitFor(t, "the next decision", func() bool { return storetest.Do(t.Context(), c.bound, core.OpTake, one("next", 1, 1)) == nil })
}
