package joining_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/floodgate-go/floodgate/stores/redis/internal/joining"
)

// If exchanges are stuck, Push lets the others go. An exchange that is stuck
// counts neither before nor after its end. There are not more of them than may be.
func TestStuckExchangesKeepNobodyWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		end := make(chan struct{})
		s := &server{long: exchangeTime, hold: map[int]chan struct{}{}}
		for i := range 9 {
			s.hold[i] = end
		}
		l := s.line(nil)
		step := func(member int) {
			l.Go(member)
			synctest.Wait()
			l.Push()
			synctest.Wait()
		}
		step(0)
		step(1)
		step(2)
		s.check(t, []int{0}, []int{1})
		time.Sleep(10*time.Millisecond - time.Nanosecond)
		l.Push()
		synctest.Wait()
		s.check(t, []int{0}, []int{1}) // not stuck yet
		time.Sleep(time.Nanosecond)
		l.Push()
		synctest.Wait()
		s.check(t, []int{0}, []int{1}, []int{2})
		step(3)
		step(4)
		s.check(t, []int{0}, []int{1}, []int{2}, []int{3})
		time.Sleep(10 * time.Millisecond)
		step(5) // only one more may be stuck
		step(6)
		s.check(t, []int{0}, []int{1}, []int{2}, []int{3}, []int{4, 5})
		time.Sleep(time.Second)
		step(7)
		s.check(t, []int{0}, []int{1}, []int{2}, []int{3}, []int{4, 5})
		close(end)
		time.Sleep(time.Second)
		s.check(t, []int{0}, []int{1}, []int{2}, []int{3}, []int{4, 5}, []int{6, 7})
		for i := range 3 {
			l.Go(20 + i)
			synctest.Wait()
		}
		s.check(t, []int{0}, []int{1}, []int{2}, []int{3}, []int{4, 5}, []int{6, 7}, []int{20}, []int{21})
		time.Sleep(time.Second)
		s.check(t, []int{0}, []int{1}, []int{2}, []int{3}, []int{4, 5}, []int{6, 7}, []int{20}, []int{21}, []int{22})
	})
}

// While a Send waits for something else than the server, others may go.
func TestAnExchangeThatStepsAsideKeepsNobodyWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{long: exchangeTime}
		aside := make(chan struct{})
		l := s.line(func(c *joining.Config[int]) {
			c.Send = func(e *joining.Exchange[int]) {
				s.send(e)
				if e.Members[0] < 2 {
					e.Aside(func() { <-aside })
					s.send(e)
				}
			}
		})
		for i := range 4 {
			l.Go(i)
			synctest.Wait()
		}
		time.Sleep(exchangeTime)
		synctest.Wait()
		s.check(t, []int{0}, []int{1}, []int{2, 3})
		time.Sleep(time.Second)
		l.Go(4)
		l.Go(5)
		l.Go(6)
		synctest.Wait()
		if n, _ := s.underWay(); n != 2 {
			t.Errorf("%d exchanges are under way beside those that have stepped aside, want 2", n)
		}
		close(aside) // they go on, and count again
		synctest.Wait()
		l.Go(7)
		synctest.Wait()
		if n, _ := s.underWay(); n != 4 {
			t.Errorf("%d exchanges are under way, want 4", n)
		}
		time.Sleep(time.Second)
		for i := 8; i < 11; i++ {
			l.Go(i)
			synctest.Wait()
		}
		if n, _ := s.underWay(); n != 2 {
			t.Errorf("%d exchanges are under way afterwards, want 2", n)
		}
		time.Sleep(time.Second)
	})
}
