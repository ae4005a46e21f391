package joining_test

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/floodgate-go/floodgate/stores/redis/internal/joining"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Whoever comes while as many exchanges are under way as may be goes with the next
// one. Nobody waits longer than for an exchange to end.
func TestWhoComesMeanwhileGoesWithTheNextExchange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{long: exchangeTime}
		l := s.line(nil)
		for i := range 6 {
			l.Go(i)
			synctest.Wait()
		}
		s.check(t, []int{0}, []int{1})
		time.Sleep(exchangeTime)
		synctest.Wait()
		s.check(t, []int{0}, []int{1}, []int{2, 3, 4, 5})
		time.Sleep(exchangeTime)
		synctest.Wait()
		l.Go(6)
		synctest.Wait()
		s.check(t, []int{0}, []int{1}, []int{2, 3, 4, 5}, []int{6})
		time.Sleep(exchangeTime)
		s.mu.Lock()
		defer s.mu.Unlock()
		if want := 2 * exchangeTime; s.at[6] != want {
			t.Errorf("a member that came alone was sent after %v, want %v", s.at[6], want)
		}
	})
}

// Do sends on the caller's goroutine if the member may go alone and at once, and
// nobody else's member.
func TestDoSendsOneMemberOnTheCallersGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{long: exchangeTime}
		l := s.line(nil)
		var wg sync.WaitGroup
		done := make([]bool, 4)
		begun := time.Now()
		for i := range done {
			wg.Go(func() {
				time.Sleep(time.Duration(i)) // one after the other
				done[i] = l.Do(i)
				if took := time.Since(begun); done[i] && took > exchangeTime+time.Duration(i) {
					t.Errorf("Do of %d took %v: it sent the members of others", i, took)
				}
			})
		}
		wg.Wait()
		if !slices.Equal(done, []bool{true, false, false, false}) {
			t.Errorf("sent by Do: %v", done)
		}
		time.Sleep(10 * exchangeTime)
		s.check(t, []int{0}, []int{1}, []int{2, 3})
	})
}

// A Send that panics on the caller's goroutine takes no place for ever.
func TestAPanicEndsTheExchange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{}
		l := s.line(func(c *joining.Config[int]) {
			c.Send = func(e *joining.Exchange[int]) {
				if e.Members[0] < 5 {
					panic("the client")
				}
				s.send(e)
			}
		})
		for i := range 5 {
			func() {
				defer func() { _ = recover() }()
				l.Do(i)
			}()
		}
		if !l.Do(5) {
			t.Error("after panics a member has to wait")
		}
		s.check(t, []int{5})
	})
}

// An exchange has at most so many members, and at most so much weight unless it has
// one member. The order stays.
func TestAnExchangeIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{long: exchangeTime, weight: map[int]int{10: 60, 11: 40, 12: 1, 13: 500, 14: 99, 15: 2}}
		l := s.line(func(c *joining.Config[int]) { c.AtOnce = 2 })
		for i := range 18 {
			l.Go(i)
			synctest.Wait()
		}
		time.Sleep(time.Second)
		s.check(t, []int{0}, []int{1}, numbers(2, 10), []int{10, 11}, []int{12}, []int{13}, []int{14}, []int{15, 16, 17})
	})
}

// Members that nobody wants to be sent any more are dropped, and take no place.
func TestMembersThatAreGoneAreNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{long: exchangeTime, gone: map[int]bool{}}
		l := s.line(nil)
		for i := range 24 {
			l.Go(i)
			synctest.Wait()
		}
		s.leave(numbers(2, 20)...)
		time.Sleep(time.Second)
		s.check(t, []int{0}, []int{1}, numbers(20, 24))
		s.leave(24)
		l.Go(24)
		l.Go(25)
		time.Sleep(time.Second)
		s.check(t, []int{0}, []int{1}, numbers(20, 24), []int{25})
	})
}

// If an answer takes long to come, more exchanges are permitted, so that nobody
// waits for as long as that. If it takes long because much is being done, they are
// not. If the server comes nearer or goes farther away, the line notices.
func TestHowManyExchangesAreUnderWayFollowsFromTheDistance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{}
		l := s.line(nil)
		next := 0
		for _, c := range []struct {
			long, each  time.Duration
			least, most int
		}{
			{60 * time.Microsecond, 0, 2, 2},
			{time.Millisecond, 0, 9, 11},
			{20 * time.Millisecond, 0, 12, 12},
			{80 * time.Microsecond, time.Microsecond, 2, 2},
			{30 * time.Microsecond, time.Microsecond, 2, 2},
		} {
			s.mu.Lock()
			s.long, s.each = c.long, c.each
			s.mu.Unlock()
			for range 700 {
				l.Go(next)
				next++
				time.Sleep(2 * c.long)
			}
			s.underWay()
			for range 1000 {
				l.Go(next)
				next++
				synctest.Wait()
			}
			if _, most := s.underWay(); most < c.least || most > c.most {
				t.Errorf("%v away: %d exchanges under way, want %d to %d", c.long, most, c.least, c.most)
			}
			time.Sleep(time.Minute)
		}
	})
}

// What the members' weights take is work of the server, and no distance: it permits
// no more exchanges.
func TestTheTimeOfTheWorkIsNoDistance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{long: 60 * time.Microsecond, each: time.Microsecond, weight: map[int]int{}}
		for i := range 1000 {
			s.weight[i] = 1000
		}
		l := s.line(nil)
		for i := range 20 {
			l.Go(i)
			time.Sleep(10 * time.Millisecond)
		}
		for i := 20; i < 60; i++ {
			l.Go(i)
			synctest.Wait()
		}
		if _, most := s.underWay(); most != 2 {
			t.Errorf("%d exchanges under way, want 2", most)
		}
		time.Sleep(time.Minute)
	})
}

// Whatever comes whenever, each member is sent once, in the order in which they
// came, by exchanges that are as full as they may be, and the line comes to rest.
func TestMembersAreSentOnceAndInOrder(t *testing.T) {
	seed := rand.Uint64()
	for round := range uint64(50) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, round))
			s := &server{long: time.Duration(1+r.IntN(300)) * time.Microsecond, weight: map[int]int{}}
			l := s.line(func(c *joining.Config[int]) { c.AtOnce = 1 + r.IntN(4) })
			const members = 500
			came := make([]time.Duration, members)
			var wg sync.WaitGroup
			for i := range members {
				if r.IntN(20) == 0 {
					s.weight[i] = 1 + r.IntN(150)
				}
			}
			for i := range members {
				if r.IntN(3) == 0 {
					time.Sleep(time.Duration(r.IntN(100)) * time.Microsecond)
				}
				came[i] = time.Since(s.begun)
				if r.IntN(2) == 0 {
					l.Go(i)
				} else {
					wg.Go(func() { l.Do(i) })
				}
				synctest.Wait()
			}
			wg.Wait()
			time.Sleep(time.Second)
			if n, _ := s.underWay(); n != 0 {
				t.Errorf("seed %d, round %d: %d exchanges have not ended", seed, round, n)
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			// Two that begin at the same time may be noted in any order.
			slices.SortFunc(s.sent, func(a, b []int) int { return a[0] - b[0] })
			if got := slices.Concat(s.sent...); !slices.Equal(got, numbers(0, members)) {
				t.Errorf("seed %d, round %d: sent %v", seed, round, s.sent)
			}
			for _, e := range s.sent {
				weight := 0
				for _, m := range e {
					weight += s.weightOf(m)
				}
				if len(e) > 8 || len(e) > 1 && weight > 100 {
					t.Errorf("seed %d, round %d: an exchange of %v, weight %d", seed, round, e, weight)
				}
			}
		})
	}
}

// Under load nobody starves: of many callers who come again at once, each waits for
// as many exchanges as those before it need, and not for longer.
func TestNobodyStarves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const callers, heavy = 100, 7
		s := &server{long: 50 * time.Microsecond, each: time.Microsecond, weight: map[int]int{}}
		for i := range 1000 {
			s.weight[heavy+i*callers] = 2000 // one caller's exchanges take long
		}
		answered := make(map[int]chan struct{})
		l := s.line(func(c *joining.Config[int]) {
			c.AtOnce = 2
			c.Send = func(e *joining.Exchange[int]) {
				s.send(e)
				for _, m := range e.Members {
					close(answered[m])
				}
			}
		})
		for i := range 20 * callers {
			answered[i] = make(chan struct{})
		}
		var longest time.Duration
		var mu sync.Mutex
		var wg sync.WaitGroup
		for c := range callers {
			wg.Go(func() {
				for i := c; i < 20*callers; i += callers {
					begun := time.Now()
					l.Go(i)
					<-answered[i]
					mu.Lock()
					longest = max(longest, time.Since(begun))
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		// 100 callers are 13 exchanges, and one that takes 2 ms more, two at a time.
		if most := 4 * time.Millisecond; longest > most {
			t.Errorf("a member waited for %v, want %v at most", longest, most)
		}
	})
}
