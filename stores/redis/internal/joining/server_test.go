package joining_test

import (
	"fmt"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/stores/redis/internal/joining"
)

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

func (s *server) send(e *joining.Exchange[int]) {
	members := slices.Clone(e.Members)
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
	if !slices.Equal(members, e.Members) {
		panic(fmt.Sprint("the members changed: ", members, e.Members))
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

// underWay returns how many exchanges are under way, and the highest number of them
// since the last call.
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
