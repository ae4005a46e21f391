package joining_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
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
		s := &server{long: exchangeTime, weight: map[int]int{5: 97}} // with 2 to 4, the largest weight
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

// Do sends on the caller's goroutine if the member may go alone and at once, and nobody else's member.
func TestDoSendsOneMemberOnTheCallersGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{long: exchangeTime}
		l := s.line(nil)
		var wg sync.WaitGroup
		took := make([]time.Duration, 4)
		for i := range took {
			wg.Go(func() {
				time.Sleep(time.Duration(i)) // one after the other
				begun := time.Now()
				l.Do(i)
				took[i] = time.Since(begun)
			})
		}
		wg.Wait()
		if !slices.Equal(took, []time.Duration{exchangeTime, 0, 0, 0}) {
			t.Errorf("Do took %v", took)
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
			c.Send = func(members []int) {
				if members[0] < 5 {
					panic("the client")
				}
				s.send(members)
			}
		})
		for i := range 5 {
			func() {
				defer func() { _ = recover() }()
				l.Do(i)
			}()
		}
		l.Do(5)
		s.check(t, []int{5})
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
		if l.Go(24); l.Waiting() != 5 {
			t.Errorf("%d wait when those in front have gone, want 5", l.Waiting())
		}
		time.Sleep(time.Second)
		s.check(t, []int{0}, []int{1}, numbers(20, 25))
		s.leave(25)
		l.Go(25)
		l.Go(26)
		time.Sleep(time.Second)
		s.check(t, []int{0}, []int{1}, numbers(20, 25), []int{26})
	})
}

// If an answer takes long to come, more exchanges are permitted, so that nobody
// waits for as long as that. If it takes long because much is being done, they are
// not: the weights of the members are no distance. If the server comes nearer or goes farther away, the line notices.
func TestHowManyExchangesAreUnderWayFollowsFromTheDistance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{weight: map[int]int{}}
		const heavy = 5 * 1700 // the members of the last row
		for i := range 1700 {
			s.weight[heavy+i] = 1000
		}
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
			{60 * time.Microsecond, time.Microsecond, 2, 2},
		} {
			s.mu.Lock()
			s.long, s.each = c.long, c.each
			s.mu.Unlock()
			for range 700 {
				l.Go(next)
				next++
				time.Sleep(2*c.long + 1000*c.each)
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

// server is what members are sent to. An exchange takes long.
type server struct {
	long   time.Duration
	each   time.Duration // for each unit of weight
	weight map[int]int   // 1 if a member is not in it
	hold   map[int]chan struct{}
	gone   map[int]bool

	mu    sync.Mutex
	sent  [][]int
	at    map[int]time.Duration // when the exchange of a member began
	begun time.Time
	now   int // exchanges under way
	most  int
}

func (s *server) weightOf(m int) int { return max(1, s.weight[m]) }

func (s *server) isGone(m int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.gone[m]
}

func (s *server) leave(members ...int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range members {
		s.gone[m] = true
	}
}

func (s *server) send(sent []int) {
	members := slices.Clone(sent)
	weight := 0
	s.mu.Lock()
	s.sent = append(s.sent, members)
	for _, m := range members {
		if s.at == nil {
			s.at = map[int]time.Duration{}
		}
		s.at[m] = time.Since(s.begun)
		weight += s.weightOf(m)
	}
	s.now++
	s.most = max(s.most, s.now)
	s.mu.Unlock()
	time.Sleep(s.long + time.Duration(weight)*s.each)
	for _, m := range members {
		if c := s.hold[m]; c != nil {
			<-c
		}
	}
	s.mu.Lock()
	s.now--
	s.mu.Unlock()
	if !slices.Equal(members, sent) {
		panic(fmt.Sprint("the members changed: ", members, sent))
	}
}

func (s *server) line(change func(*joining.Config[int])) *joining.Line[int] {
	s.begun = time.Now()
	config := joining.Config[int]{
		Send: s.send, Weight: s.weightOf, Gone: s.isGone,
		Most: 8, MostWeight: 100, Patience: 10 * time.Millisecond, MostStuck: 3,
	}
	if change != nil {
		change(&config)
	}
	return joining.New(config)
}

// underWay returns how many exchanges are under way, and the highest number of them since the last call.
func (s *server) underWay() (now, most int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, most, s.most = s.now, s.most, s.now
	return now, most
}

func (s *server) check(t *testing.T, want ...[]int) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !reflect.DeepEqual(s.sent, want) {
		t.Errorf("sent %v, want %v", s.sent, want)
	}
}

const exchangeTime = 100 * time.Microsecond

func numbers(from, to int) (all []int) {
	for i := from; i < to; i++ {
		all = append(all, i)
	}
	return all
}

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
