package policy_test

import (
	"strings"
	"testing"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/floodgatetest"
	"github.com/floodgate-go/floodgate/internal/redistest"
	"github.com/floodgate-go/floodgate/policy"
	redisstore "github.com/floodgate-go/floodgate/stores/redis"
	"github.com/redis/go-redis/v9"
)

// running has the requests of a Set that run.
type running struct {
	*testing.T
	set *policy.Set
}

func (r running) begin(path string, allowed bool) (end func()) {
	r.Helper()
	q := floodgatetest.NewRequest("GET", path)
	d := r.set.Check(q)
	if d.Allowed != allowed {
		r.Fatalf("%s: %v", path, d)
	}
	if allowed != d.NeedsOutcome() {
		r.Errorf("%s: needs the outcome: %t", path, d.NeedsOutcome())
	}
	if !allowed {
		if denial := r.set.Deny(q, d); denial.Status != 429 {
			r.Errorf("%s: %+v", path, denial)
		}
		return func() {}
	}
	return func() { r.set.Settle(q, d, core.Outcome{Status: 200}) }
}

func (r running) held(want int64) {
	r.Helper()
	n := int64(0)
	for _, l := range r.set.InFlight() {
		n += l.Held()
	}
	if n != want {
		r.Errorf("%d slots are held, want %d", n, want)
	}
}

const reports = `
policies:
  - {name: reports, match: {paths: [/reports]}, key: path, in-flight: 2, limits: 3/h}
  - {name: all, in-flight: 3}
`

// A request takes its slots, then its hits, and gives the slots back if it is denied.
func TestInFlight(t *testing.T) {
	s, err := policy.Parse("limits.yaml", []byte(reports))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close() //nolint:errcheck // the test is over
	r := running{t, s}
	first, second := r.begin("/reports", true), r.begin("/reports", true)
	r.held(4)
	r.begin("/reports", false)
	r.held(4)
	other := r.begin("/other", true)
	r.begin("/other", false) // the slots of all
	r.held(5)
	first()
	first()
	r.held(3)
	third := r.begin("/reports", true)
	second()
	other()
	r.begin("/reports", false) // the fourth hit of three
	r.held(2)
	third()
	r.held(0)
}

// Slots stay held when the file changes, and a changed number is in force at once.
func TestInFlightOfAChangedFile(t *testing.T) {
	s, err := policy.Parse("limits.yaml", []byte("policies: [{name: a, in-flight: 1}]"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close() //nolint:errcheck // the test is over
	r := running{t, s}
	first := r.begin("/", true)
	if err := s.Replace([]byte("policies: [{name: a, in-flight: 2}]")); err != nil {
		t.Fatal(err)
	}
	second := r.begin("/", true)
	r.begin("/", false)
	first()
	second()
	r.held(0)
}

// A store that keeps slots shares them; one that does not is a mistake.
func TestInFlightInAStore(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: redistest.Start(t).Addr})
	defer client.Close() //nolint:errcheck // the test is over
	var sets [2]running
	for i := range sets {
		s, err := policy.Parse("limits.yaml", []byte("policies: [{name: a, in-flight: 1}]"), policy.WithStore(redisstore.New(client, redisstore.AnotherInstance())))
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close() //nolint:errcheck // the test is over
		sets[i] = running{t, s}
	}
	end := sets[0].begin("/", true)
	sets[1].begin("/", false)
	end()
	sets[1].begin("/", true)()

	_, err := policy.Parse("limits.yaml", []byte("policies: [{name: a, in-flight: 1}]"), policy.WithStore(noSlots{core.Must(core.NewMemory(core.MemoryConfig{}))}))
	if len(policy.Errors(err)) != 1 || !strings.Contains(err.Error(), "keeps no slots") {
		t.Errorf("of a store without slots: %v", err)
	}
}

// noSlots is a Memory that says that other processes count in it.
type noSlots struct{ *core.Memory }

func (s noSlots) Guarantees() core.Guarantees {
	g := s.Memory.Guarantees()
	g.Shared = true
	return g
}
