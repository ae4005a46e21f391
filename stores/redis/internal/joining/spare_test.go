package joining

import (
	"testing"
	"testing/synctest"
)

// A line keeps some of the exchanges that have ended, and uses them again.
func TestALineKeepsAFewExchanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		end := make(chan struct{})
		var sent []*Exchange[int]
		l := New(Config[int]{
			Send:   func(e *Exchange[int]) { sent = append(sent, e); <-end },
			Weight: func(int) int { return 1 },
			Gone:   func(int) bool { return false },
			Most:   1, MostWeight: 1, AtOnce: 20,
		})
		for i := range 10 {
			l.Go(i)
			synctest.Wait()
		}
		close(end)
		synctest.Wait()
		if n := len(l.spare); n != mostSpare {
			t.Errorf("%d exchanges are kept, want %d", n, mostSpare)
		}
		kept := l.spare[len(l.spare)-1]
		l.Go(10)
		synctest.Wait()
		if sent[10] != kept {
			t.Error("an exchange that is kept is not used again")
		}
	})
}
