package dashboards

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/floodgate-go/floodgate/internal/processtest"
)

// state is a state of the site.
type state struct {
	name   string
	begin  func(*site)
	minute func(s *site) (scraped bool) // what clients send in a minute; nil: what healthy sends
	end    func(*site)
	fires  []string // the alerts that must fire
	may    []string // those that may, too
}

// minutes is how long a state lasts: longer than each alert waits.
const minutes = 26

var healthy = state{name: "healthy"}

// calm is a minute in which nothing is wrong.
func calm(s *site) {
	for range 6 {
		from := s.stranger()
		s.wants(http.StatusOK, s.get("/api", from), s.get("/api", from))
	}
	for i := range 2 {
		s.wants(http.StatusOK, s.logIn(fmt.Sprint("user", i), "correct horse", s.stranger()), s.get("/export?takes=1ms", s.stranger()))
	}
	s.wants(http.StatusUnauthorized, s.logIn(fmt.Sprint("user", s.next), "typo", s.stranger()))
}

func (s *site) wants(status int, got ...int) {
	s.Helper()
	for _, g := range got {
		if g != status {
			s.Fatalf("status %d, want %d", g, status)
		}
	}
}

var states = []state{
	{
		name: "attacked",
		minute: func(s *site) bool {
			calm(s)
			for range 30 {
				s.get("/api", "192.0.2.66")
			}
			return false
		},
		fires: []string{"FloodgateDenyingMany"},
	},
	{
		name: "near",
		minute: func(s *site) bool {
			from := s.stranger()
			for range 20 {
				s.wants(http.StatusOK, s.get("/api", from))
			}
			return false
		},
		fires: []string{"FloodgateNearLimit"},
	},
	{
		name: "crowded",
		minute: func(s *site) bool {
			var seen atomic.Bool
			s.hangs.Go(func() {
				for !seen.Load() { // a busy machine may look when the queue is empty again
					together(10, func() { s.get("/export?takes=100ms", "192.0.2.7") })
				}
			})
			text := s.look("floodgate_rate_limiting_queued_requests")
			seen.Store(true)
			if err := s.parse([]byte(text), "text/plain; version=0.0.4", s.now); err != nil {
				s.Fatal(err)
			}
			s.hangs.Wait()
			return true
		},
		fires: []string{"FloodgateQueueTooSlow"},
		may:   []string{"FloodgateDenyingMany", "FloodgateNearLimit"}, // there are two slots: near is both
	},
	{
		name: "guessed at",
		minute: func(s *site) bool {
			for range 2 {
				from := s.stranger()
				for range 3 {
					s.logIn("victim", "guess", from)
				}
				s.logIn(fmt.Sprint("somebody", s.next), "guess", s.stranger())
				s.logIn(fmt.Sprint("somebody", s.next), "guess", s.stranger())
			}
			s.wants(http.StatusOK, s.logIn("ann", "correct horse", s.stranger()))
			return false
		},
		fires: []string{"FloodgateLoginSuspicion", "FloodgateLoginFailures"},
		may:   []string{"FloodgateDenyingMany", "FloodgateNearLimit"},
	},
	{
		name:  "slow store",
		begin: func(s *site) { s.proxy.Delay(60 * time.Millisecond) },
		minute: func(s *site) bool {
			together(4, func() { s.get("/api", "192.0.2.8") })
			together(1, func() { s.get("/export?takes=1ms", "192.0.2.8") })
			return false
		},
		end:   func(s *site) { s.proxy.Delay(0); s.recovers() },
		fires: []string{"FloodgateStoreSlow"},
		may:   []string{"FloodgateQueueTooSlow", "FloodgateDenyingMany", "FloodgateNearLimit"},
	},
	{
		name:  "without the store",
		begin: func(s *site) { s.redis.Stop() },
		minute: func(s *site) bool {
			for range 6 {
				s.get("/api", s.stranger())
			}
			together(3, func() { s.get("/export?takes=1ms", "192.0.2.8") })
			s.logIn("ann", "correct horse", "192.0.2.9")
			return false
		},
		end:   func(s *site) { s.redis.Restart(); s.recovers() },
		fires: []string{"FloodgateFailing", "FloodgateDegraded", "FloodgateStoreErrors"},
		may:   []string{"FloodgateStoreSlow", "FloodgateDenyingMany"},
	},
}

// recovers waits until the store is used again.
func (s *site) recovers() {
	processtest.WaitFor(s.T, "the store", func() bool {
		return s.get("/export?takes=1ms", s.stranger()) == http.StatusOK && s.get("/api", s.stranger()) == http.StatusOK && !s.degrades()
	})
}
